import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  SOME_ENGINES,
  kill,
  SHORT_LEASE,
  ProcessTestContext,
  waitFor,
  type Program,
} from './harness.ts'
import { waitForWatchdog } from './wrapped.ts'
import { COMMAND_STORE } from '../../src/features/commands/store/store.ts'

const POST = `curl -sf -H "Authorization: Bearer $UNSTUCK_TOKEN" -H 'content-type: application/json'`
/** Saves a page when the test opens the gate, then another, then ends its run. */
const COMMAND =
  `echo up; until [ -e go.gate ]; do sleep 0.05; done; echo posting; ` +
  `${POST} "$UNSTUCK_URL/checkpoint" -d '{"page":1,"items":[{"key":"a","data":1}]}' && ` +
  `${POST} "$UNSTUCK_URL/checkpoint" -d '{"page":2,"items":[{"key":"b","data":2}]}' && ` +
  `${POST} "$UNSTUCK_URL/finish" -d '{}' && echo posted`

/** A command whose watchdog is stopped until recovery has taken its run; something else watches. */
async function startTakenRun(
  ctx: ProcessTestContext,
): Promise<{ program: Program; watchdog: number }> {
  ctx.writeConfig({ portal: { heartbeat: '400ms', lease: '2s' } })
  const idle = ctx.module(
    'idle.ts',
    `export default defineCrawl({
      source: 'idle', *targets() {}, async page() { return { next: null } }, policy: ${SHORT_LEASE},
    })`,
  )
  await ctx.unstuck('work', idle).waitForOutput('working on idle')
  const program = ctx.unstuck('run', 'portal', '--', 'bash', '-c', COMMAND)
  await program.waitForOutput('] up')
  const watchdog = await waitForWatchdog(program)
  await ctx.freeze({ pid: watchdog })
  // The sweep marks the run a moment after it took its target.
  await waitFor('its run is taken', async () => (await ctx.run('portal')).status === 'interrupted')
  return { program, watchdog }
}

async function assertContinued(ctx: ProcessTestContext, program: Program): Promise<void> {
  assert.equal(await program.waitForExit(), 0, program.output)
  assert.match(
    program.output,
    /was taken from this process while it was silent, and is claimed again/,
  )
  const verdicts = await ctx.verdicts()
  assert.deepEqual(
    verdicts.map(({ action, because }) => [action, /its command may still run/.test(because)]),
    [['resume', true]],
  )
  const store = await ctx.store()
  const { items: runs } = await store.runs({ source: 'portal', limit: 10 })
  assert.deepEqual(
    runs.map(({ status, resumes, counts }) => [status, resumes, counts.pages]),
    [['succeeded', 1, 2]],
  )
  const [target] = (await store.targets(runs[0]!.id, { limit: 1 })).items
  assert.deepEqual([target!.epoch, target!.crashes], [2, 0])
  assert.equal(
    (await (await store.extend(COMMAND_STORE)).executions([runs[0]!.id], 10)).length,
    1,
    'it was started once',
  )
}

for (const engine of SOME_ENGINES) {
  describe(`P9 a wrapped command whose run was taken while its watchdog was silent, ${engine.name}`, () => {
    test('P9 it is claimed again when no other copy has it: the command continues, and saves its pages', async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const { program, watchdog } = await startTakenRun(ctx)
      kill(watchdog, 'SIGCONT')
      await program.waitForOutput('is claimed again')
      ctx.openGate('go')

      await assertContinued(ctx, program)
    })

    test('P1 P9 a page sent meanwhile is rejected under the lost claim, and saved under the new one', async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const { program, watchdog } = await startTakenRun(ctx)
      ctx.openGate('go')
      // Its output comes through the watchdog, which stands still: the store shows that it has posted.
      await waitFor('the page is refused', async () => (await ctx.run('portal')).counts.refused > 0)
      kill(watchdog, 'SIGCONT')

      await assertContinued(ctx, program)
    })
  })
}
