import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { isLong } from '../../src/testing/long-tests.ts'
import { ENGINES, SOME_ENGINES, kill, ProcessTestContext, waitFor } from './harness.ts'
import { killWithWatchdog, waitForWatchdog, overlaps, ticker, ticks } from './wrapped.ts'

/** Prints, then waits for a file. */
const WAIT_FOR_GATE = [
  'bash',
  '-c',
  'echo begun; until [ -e go.gate ]; do sleep 0.02; done; echo done',
]

const STARTS = isLong ? 10 : 6

for (const engine of SOME_ENGINES) {
  test(`${engine.name}: of ${STARTS} starts at once exactly one runs, the others name the holder and its start and exit with 5 (P10)`, async () => {
    await using ctx = await ProcessTestContext.create(engine)
    const starts = Array.from({ length: STARTS }, () =>
      ctx.unstuck('run', 'portal', '--', ...WAIT_FOR_GATE),
    )
    const ended = () => starts.filter((one) => !one.isAlive).length
    await waitFor('all but one are refused', () => ended() === STARTS - 1)
    ctx.openGate('go')
    const codes = await Promise.all(starts.map((one) => one.waitForExit()))
    assert.deepEqual(codes.sort(), [0, ...Array.from({ length: STARTS - 1 }, () => 5)])
    const refused = starts.filter((one) => !one.output.includes('done'))
    for (const { output } of refused)
      assert.match(output, /already running: .*since \d{4}-.*process \d+ on .* is alive/)
    assert.equal(starts.filter(({ output }) => output.includes('begun')).length, 1)
    await ctx.assertNoProcessesLeft()
  })

  test(`${engine.name}: skip ends with 0, wait runs after it, and a program of one's own is refused as well`, async () => {
    await using ctx = await ProcessTestContext.create(engine)
    const first = ctx.unstuck('run', 'portal', '--', ...WAIT_FOR_GATE)
    await first.waitForOutput('begun')
    const skipped = ctx.unstuck('run', 'portal', '--if-running', 'skip', '--', 'echo', 'second')
    assert.equal(await skipped.waitForExit(), 0)
    assert.match(skipped.output, /skipped: portal is already running/)
    const own = ctx.module(
      'own.ts',
      `const unstuck = await open({ db: process.env.UNSTUCK_DB })
       await unstuck.begin('portal').catch((error) => console.log(error.code))
       await unstuck.close()`,
    )
    const library = ctx.start([own])
    assert.equal(await library.waitForExit(), 0)
    assert.match(library.output, /E_ALREADY_RUNNING/)
    const waiting = ctx.unstuck('run', 'portal', '--if-running', 'wait', '--', 'echo', 'third')
    await waiting.waitForOutput('waiting: portal is running')
    ctx.openGate('go')
    assert.equal(await waiting.waitForExit(), 0)
    assert.match(waiting.output, /\] third/)
    assert.equal(await first.waitForExit(), 0)
    const store = await ctx.store()
    const runs = (await store.runs({ source: 'portal', limit: 10 })).items
    assert.deepEqual(
      runs.map(({ status }) => status),
      ['succeeded', 'succeeded'],
    )
  })
}

const [sqlite] = ENGINES

test('the source is held between two cycles too, and a queued run is taken by the next one', async () => {
  await using ctx = await ProcessTestContext.create(sqlite!)
  const show = ['bash', '-c', 'echo "input $UNSTUCK_INPUT"']
  const repeated = ctx.unstuck('run', 'portal', '--interval', '3s', '--', ...show)
  await repeated.waitForOutput('starts again in 3 s')
  const store = await ctx.store()
  assert.equal(await store.liveRun('portal'), null)
  const other = ctx.unstuck('run', 'portal', '--', 'echo', 'me too')
  assert.equal(await other.waitForExit(), 5)
  const check = ctx.unstuck('check', 'portal')
  assert.equal(await check.waitForExit(), 5)
  assert.match(check.output, /wait: (A worker holds it|Its supervisor waits)/)
  // While a cycle is at work, its run is in the way.
  const queue = ['enqueue', 'portal', '--input', '{"n":7}']
  await waitFor('a moment between', async () => (await ctx.unstuck(...queue).waitForExit()) === 0)
  await repeated.waitForOutput(/input \{"n":7\}[^]*starts again/)
  repeated.signal('SIGTERM')
  assert.equal(await repeated.waitForExit(), 0, 'between cycles nothing is left undone')
  assert.equal(await ctx.unstuck('run', 'portal', '--', 'true').waitForExit(), 0)
})

test('with a timetable the source is held from the start; a stop before its time leaves nothing undone', async () => {
  await using ctx = await ProcessTestContext.create(sqlite!)
  const program = ctx.unstuck('run', 'portal', '--cron', '0 0 1 1 *', '--', 'true')
  await program.waitForOutput('first run in')
  assert.equal(await ctx.unstuck('run', 'portal', '--', 'true').waitForExit(), 5)
  assert.equal(await ctx.unstuck('check', 'portal').waitForExit(), 5)
  program.signal('SIGTERM')
  assert.equal(await program.waitForExit(), 0)
})

test('stopped while it waits for a program of one’s own: exit 75', async () => {
  await using ctx = await ProcessTestContext.create(sqlite!)
  const own = ctx.module(
    'own.ts',
    `const unstuck = await open({ db: process.env.UNSTUCK_DB })
     await unstuck.begin('portal')
     mark('begun')
     await opened('never')`,
  )
  ctx.start([own])
  await ctx.waitForMarks('begun')
  const waiting = ctx.unstuck('run', 'portal', '--if-running', 'wait', '--', 'true')
  await waiting.waitForOutput('waiting: portal is already running')
  waiting.signal('SIGTERM')
  assert.equal(await waiting.waitForExit(), 75, waiting.output)
  assert.doesNotMatch(waiting.output, /E_UNEXPECTED/)
})

test('killed -9: the watchdog ends the tree, and a new copy waits for that, whatever its options (P13)', async () => {
  await using ctx = await ProcessTestContext.create(sqlite!)
  const command = ticker(ctx)
  const first = ctx.unstuck('run', 'portal', '--kill-timeout', '1s', '--', ...command)
  await waitFor('both tick', () => new Set(ticks(ctx).map(({ who }) => who)).size === 2)
  first.signal('SIGKILL')
  // The default, fail: but who is ending will be gone.
  const second = ctx.unstuck('run', 'portal', '--kill-timeout', '1s', '--', ...command)
  await waitFor('the second copy', () => new Set(ticks(ctx).map(({ copy }) => copy)).size === 2)
  second.signal('SIGTERM')
  assert.equal(await second.waitForExit(), 75)
  await ctx.assertNoProcessesLeft()
  assert.deepEqual(overlaps(ticks(ctx)), [])
})

test('killed -9 and not restarted: the watchdog still ends the tree, and unlocks the source (P13)', async () => {
  await using ctx = await ProcessTestContext.create(sqlite!)
  const program = ctx.unstuck('run', 'portal', '--kill-timeout', '300ms', '--', ...ticker(ctx))
  await waitFor('both tick', () => new Set(ticks(ctx).map(({ who }) => who)).size === 2)
  program.signal('SIGKILL')
  await ctx.assertNoProcessesLeft()
  const guard = (await (await ctx.store()).sourceLocks('portal'))[0]
  assert.equal(guard?.worker, null)
})

test('Unstuck and its watchdog killed -9 together: the next start ends the remaining processes, and then begins', async () => {
  await using ctx = await ProcessTestContext.create(sqlite!)
  const command = ticker(ctx)
  const first = ctx.unstuck('run', 'portal', '--', ...command)
  await waitFor('both tick', () => new Set(ticks(ctx).map(({ who }) => who)).size === 2)
  await killWithWatchdog(first)
  const then = ticks(ctx).length
  await waitFor('the orphans go on', () => ticks(ctx).length > then + 20)
  const second = ctx.unstuck('run', 'portal', '--kill-timeout', '300ms', '--', 'echo', 'alone')
  assert.equal(await second.waitForExit(), 0)
  assert.match(second.output, /ended \d+ process(es)? that an earlier copy had left/)
  await ctx.assertNoProcessesLeft()
  const log = readFileSync(join(ctx.folder, 'ticks'), 'utf8')
  assert.ok(log.length > 0)
})

test('a watchdog suspended for longer than its lease: its tree is ended by the next start (P1)', async () => {
  await using ctx = await ProcessTestContext.create(sqlite!)
  ctx.writeConfig({ portal: { heartbeat: '200ms', lease: '1s' } })
  const command = ticker(ctx)
  const first = ctx.unstuck('run', 'portal', '--', ...command)
  await waitFor('both tick', () => new Set(ticks(ctx).map(({ who }) => who)).size === 2)
  const watchdog = await waitForWatchdog(first)
  await ctx.freeze({ pid: watchdog })
  const second = ctx.unstuck(
    'run',
    'portal',
    '--if-running',
    'wait',
    '--kill-timeout',
    '500ms',
    '--',
    ...command,
  )
  await waitFor('the second copy', () => new Set(ticks(ctx).map(({ copy }) => copy)).size === 2)
  second.signal('SIGTERM')
  await second.waitForExit()
  // Whichever it hears of first: that its command was killed, or that its source is another's.
  const code = await first.waitForExit()
  assert.ok(code === 137 || code === 6, `it ended with ${code}`)
  await ctx.assertNoProcessesLeft()
  assert.deepEqual(overlaps(ticks(ctx)), [])
})

test('the watchdog alone killed -9: the command ends with it, and with restarts a new one replaces it', async () => {
  await using ctx = await ProcessTestContext.create(sqlite!)
  const command = ticker(ctx)
  const restarts = '--restart on-failure --restart-delay 50ms --kill-timeout 200ms'.split(' ')
  const program = ctx.unstuck('run', 'portal', ...restarts, '--', ...command)
  await waitFor('both tick', () => new Set(ticks(ctx).map(({ who }) => who)).size === 2)
  kill(await waitForWatchdog(program), 'SIGKILL')
  await waitFor('the second copy', () => new Set(ticks(ctx).map(({ copy }) => copy)).size === 2)
  await program.waitForOutput('A new watchdog takes its place')
  program.signal('SIGTERM')
  assert.equal(await program.waitForExit(), 75)
  await ctx.assertNoProcessesLeft()
  assert.deepEqual(overlaps(ticks(ctx)), [])
})
