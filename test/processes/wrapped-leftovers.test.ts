import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { open } from '../../src/index.ts'
import { endLeftovers, listLeftovers } from '../../src/operator/leftover-processes.ts'
import { enqueueSingle } from '../../src/testing/fixtures.ts'
import { CLI, ENGINES, ProcessTestContext, waitFor, type Program } from './harness.ts'
import { killWithWatchdog, lastCopy, ticker, ticks } from './wrapped.ts'

type Leftovers = { readonly processes: { pid: number; command: string; outcome: string }[] }

const OTHER_HOST = 'unshare --user --map-root-user --pid --fork --kill-child --mount-proc'.split(
  ' ',
)
const canUnshare = spawnSync(OTHER_HOST[0]!, [...OTHER_HOST.slice(1), 'true']).status === 0

for (const engine of ENGINES) {
  test(`${engine.name}: processes that outlived Unstuck and its watchdog are shown everywhere, and end when that is confirmed`, async () => {
    await using ctx = await ProcessTestContext.create(engine)
    const copy = await leaveTree(ctx)

    const check = ctx.unstuck('check', 'portal', '--json')
    assert.equal(await check.waitForExit(), 5)
    const advice = JSON.parse(check.output) as Leftovers & { action: string; because: string }
    assert.equal(advice.action, 'wait')
    assert.match(advice.because, /2 processes of an earlier copy still run/)
    assert.deepEqual(
      advice.processes.map(({ command }) => command.split(' ')[0]),
      ['bash', 'bash'],
    )
    const shown = new RegExp(`process ${copy} on \\S+ \\(bash [^)]+\\), for \\d`)
    assert.match(await outputOf(ctx, 5, 'check', 'portal'), shown)
    for (const command of ['status', 'doctor']) assert.match(await outputOf(ctx, 3, command), shown)
    const preview = await outputOf(ctx, 3, 'recover', '--dry-run')
    assert.match(preview, /Processes of earlier copies that would be ended/)
    assert.match(preview, new RegExp(`process ${copy} on`))

    // Without a terminal nothing was confirmed.
    assert.match(await outputOf(ctx, 3, 'recover'), /still runs[^]*recover --yes/)
    assert.equal(isTicking(ctx, copy), true)
    await using unstuck = await open({ db: ctx.database.url })
    const planned = await unstuck.recover({ dryRun: true })
    assert.deepEqual(outcomes(planned), ['planned', 'planned'])
    const { summary, processes } = await unstuck.recover({ plan: planned.plan })
    assert.deepEqual(outcomes({ processes }), ['ended', 'ended'])
    assert.match(summary, /Ended 2 processes of earlier copies/)
    assert.equal(isTicking(ctx, copy), false)

    const [entry] = (await ctx.verdicts()).filter(({ action }) => action === 'end-processes')
    assert.match(entry!.because, new RegExp(`process ${copy} on`))
    assert.equal((await unstuck.check('portal')).action, 'start')
    assert.deepEqual((await unstuck.recover({ dryRun: true })).processes, [])
  })

  test(`${engine.name}: the end is in the audit trail of the run whose processes were ended, not of one queued since`, async () => {
    await using ctx = await ProcessTestContext.create(engine)
    await leaveTree(ctx)
    const store = await ctx.store()
    const killed = await ctx.run('portal')
    const leftovers = await waitFor('what is left', async () => {
      const found = await listLeftovers(store, {})
      return found.length === 1 ? found : null
    })
    await outputOf(ctx, 0, 'cancel', 'portal')
    await enqueueSingle(store, 'portal')
    await endLeftovers(store, leftovers, 'a test')
    const [entry] = (await ctx.verdicts()).filter(({ action }) => action === 'end-processes')
    assert.equal(entry!.run, killed.id)
  })

  test(`${engine.name}: a copy that was started after the preview keeps its processes`, async () => {
    await using ctx = await ProcessTestContext.create(engine)
    const old = await leaveTree(ctx)
    const store = await ctx.store()
    // The kernel takes a moment to end its watchdog.
    const leftovers = await waitFor('what is left', async () => {
      const found = await listLeftovers(store, {})
      return found.length === 1 ? found : null
    })
    ctx.unstuck('run', 'portal', '--kill-timeout', '300ms', '--', ...ticker(ctx))
    const copy = await waitFor('a new copy', () => {
      const last = lastCopy(ctx)
      return last !== null && last !== old && isWhole(ctx, last) ? last : null
    })
    await endLeftovers(store, leftovers, 'a test')
    const before = ticks(ctx).length
    await waitFor('both still tick', () => {
      const since = ticks(ctx).slice(before + 1)
      return new Set(since.map(({ who }) => who)).size === 2
    })
    assert.equal(lastCopy(ctx), copy)
    assert.deepEqual(await listLeftovers(store, {}), [])
  })

  test(
    `${engine.name}: in another pid namespace check waits for lease and kill timeout, and gives the reason`,
    { skip: canUnshare ? false : 'unshare is not allowed here' },
    async () => {
      await using ctx = await ProcessTestContext.create(engine)
      await leaveTree(ctx, '--kill-timeout', '10m')
      // On PostgreSQL a lost session counts when heartbeats are missing too.
      await waitFor('the death to be known', async () => {
        const check = ctx.start([CLI, 'check', 'portal'], { under: OTHER_HOST })
        assert.equal(await check.waitForExit(), 5)
        return /cannot be seen from here: waiting (10|9) min/.test(check.output)
      })
    },
  )
}

/** Starts a command, and kills Unstuck and its watchdog. Returns the pid of the command, which continues. */
async function leaveTree(ctx: ProcessTestContext, ...options: string[]): Promise<string> {
  const program: Program = ctx.unstuck('run', 'portal', ...options, '--', ...ticker(ctx))
  const copy = await waitFor('both tick', () => {
    const last = lastCopy(ctx)
    return last !== null && isWhole(ctx, last) ? last : null
  })
  await killWithWatchdog(program)
  assert.equal(isTicking(ctx, copy), true)
  return copy
}

function isWhole(ctx: ProcessTestContext, copy: string): boolean {
  return new Set(ticks(ctx).flatMap((one) => (one.copy === copy ? [one.who] : []))).size === 2
}

function isTicking(ctx: ProcessTestContext, copy: string): boolean {
  return ctx.processes().includes(Number(copy))
}

function outcomes({
  processes,
}: Pick<Leftovers, never> & { processes: readonly { outcome: string }[] }) {
  return processes.map(({ outcome }) => outcome)
}

async function outputOf(ctx: ProcessTestContext, code: number, ...args: string[]): Promise<string> {
  const program = ctx.unstuck(...args)
  assert.equal(await program.waitForExit(), code, program.output)
  return program.output
}
