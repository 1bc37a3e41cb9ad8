import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ENGINES, kill, SHORT_LEASE, Stage, until, type Program } from './harness.ts'
import { guardianOf } from './wrapped.ts'

const POST = `curl -sf -H "Authorization: Bearer $UNSTUCK_TOKEN" -H 'content-type: application/json'`
/** Saves a page when the test opens the gate, then another, then ends its run. */
const COMMAND =
  `echo up; until [ -e go.gate ]; do sleep 0.05; done; echo posting; ` +
  `${POST} "$UNSTUCK_URL/checkpoint" -d '{"page":1,"items":[{"key":"a","data":1}]}' && ` +
  `${POST} "$UNSTUCK_URL/checkpoint" -d '{"page":2,"items":[{"key":"b","data":2}]}' && ` +
  `${POST} "$UNSTUCK_URL/finish" -d '{}' && echo posted`

/** A command whose guardian is stopped until recovery has taken its run; something else watches. */
async function taken(stage: Stage): Promise<{ program: Program; guardian: number }> {
  stage.config({ portal: { heartbeat: '400ms', lease: '2s' } })
  const idle = stage.module(
    'idle.ts',
    `export default defineCrawl({
      source: 'idle', *targets() {}, async page() { return { next: null } }, policy: ${SHORT_LEASE},
    })`,
  )
  await stage.unstuck('work', idle).says('working on idle')
  const program = stage.unstuck('run', 'portal', '--', 'bash', '-c', COMMAND)
  await program.says('] up')
  const guardian = await guardianOf(program)
  await stage.freeze({ pid: guardian })
  // The sweep marks the run a moment after it took its target.
  await until('its run is taken', async () => (await stage.run('portal')).status === 'interrupted')
  return { program, guardian }
}

async function assertWentOn(stage: Stage, program: Program): Promise<void> {
  assert.equal(await program.end(), 0, program.output)
  assert.match(
    program.output,
    /was taken from this process while it was silent, and is claimed again/,
  )
  const verdicts = await stage.verdicts()
  assert.deepEqual(
    verdicts.map(({ action, because }) => [action, /its command may still run/.test(because)]),
    [['resume', true]],
  )
  const store = await stage.store()
  const { items: runs } = await store.runs({ source: 'portal', limit: 10 })
  assert.deepEqual(
    runs.map(({ status, resumes, counts }) => [status, resumes, counts.pages]),
    [['succeeded', 1, 2]],
  )
  const [target] = (await store.targets(runs[0]!.id, { limit: 1 })).items
  assert.deepEqual([target!.epoch, target!.crashes], [2, 0])
  assert.equal((await store.executions(runs[0]!.id, 10)).length, 1, 'it was started once')
}

for (const engine of ENGINES) {
  describe(`P9 a wrapped command whose run was taken while its guardian was silent, ${engine.name}`, () => {
    test('P9 it is claimed again when no other copy has it: the command goes on, and saves its pages', async () => {
      await using stage = await Stage.set(engine)
      const { program, guardian } = await taken(stage)
      kill(guardian, 'SIGCONT')
      await program.says('is claimed again')
      stage.open('go')

      await assertWentOn(stage, program)
    })

    test('P1 P9 a page that it sends meanwhile is refused under the lost claim, and saved under the new one', async () => {
      await using stage = await Stage.set(engine)
      const { program, guardian } = await taken(stage)
      stage.open('go')
      // Its output comes through the guardian, which stands still: the store shows that it has posted.
      await until('the page is refused', async () => (await stage.run('portal')).counts.refused > 0)
      kill(guardian, 'SIGCONT')

      await assertWentOn(stage, program)
    })
  })
}
