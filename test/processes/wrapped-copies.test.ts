import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { ENGINES, SOME_ENGINES, kill, Stage, until } from './harness.ts'
import { guardianOf, overlaps, ticker, ticks } from './wrapped.ts'

/** Prints, then waits for a file. */
const PATIENT = ['bash', '-c', 'echo begun; until [ -e go.gate ]; do sleep 0.02; done; echo done']

for (const engine of SOME_ENGINES) {
  test(`${engine.name}: of ten starts at once exactly one runs, the others say who and since when and end with 5 (P10)`, async () => {
    await using stage = await Stage.set(engine)
    const starts = Array.from({ length: 10 }, () =>
      stage.unstuck('run', 'portal', '--', ...PATIENT),
    )
    await until('nine that were refused', () => starts.filter((one) => !one.isAlive).length === 9)
    stage.open('go')
    const codes = await Promise.all(starts.map((one) => one.end()))
    assert.deepEqual(codes.sort(), [0, ...Array.from({ length: 9 }, () => 5)])
    const refused = starts.filter((one) => !one.output.includes('done'))
    for (const { output } of refused)
      assert.match(output, /already running: .*since \d{4}-.*process \d+ on .* is alive/)
    assert.equal(starts.filter(({ output }) => output.includes('begun')).length, 1)
    await stage.assertNobodyLeft()
  })

  test(`${engine.name}: skip ends with 0, wait runs after it, and a program of one's own is refused as well`, async () => {
    await using stage = await Stage.set(engine)
    const first = stage.unstuck('run', 'portal', '--', ...PATIENT)
    await first.says('begun')
    const skipped = stage.unstuck('run', 'portal', '--if-running', 'skip', '--', 'echo', 'second')
    assert.equal(await skipped.end(), 0)
    assert.match(skipped.output, /skipped: portal is already running/)
    const own = stage.module(
      'own.ts',
      `const unstuck = await open({ db: process.env.UNSTUCK_DB })
       await unstuck.begin('portal').catch((error) => console.log(error.code))
       await unstuck.close()`,
    )
    const library = stage.start([own])
    assert.equal(await library.end(), 0)
    assert.match(library.output, /E_ALREADY_RUNNING/)
    const waiting = stage.unstuck('run', 'portal', '--if-running', 'wait', '--', 'echo', 'third')
    await waiting.says('waiting: portal is running')
    stage.open('go')
    assert.equal(await waiting.end(), 0)
    assert.match(waiting.output, /\] third/)
    assert.equal(await first.end(), 0)
    const store = await stage.store()
    const runs = (await store.runs({ source: 'portal', limit: 10 })).items
    assert.deepEqual(
      runs.map(({ status }) => status),
      ['succeeded', 'succeeded'],
    )
  })
}

const [sqlite] = ENGINES

test('the source is held between two cycles too, and a queued run is taken by the next one', async () => {
  await using stage = await Stage.set(sqlite!)
  const show = ['bash', '-c', 'echo "input $UNSTUCK_INPUT"']
  const repeated = stage.unstuck('run', 'portal', '--interval', '3s', '--', ...show)
  await repeated.says('starts again in 3 s')
  const store = await stage.store()
  assert.equal(await store.liveRun('portal'), null)
  const other = stage.unstuck('run', 'portal', '--', 'echo', 'me too')
  assert.equal(await other.end(), 5)
  const check = stage.unstuck('check', 'portal')
  assert.equal(await check.end(), 5)
  assert.match(check.output, /wait: Someone is at it/)
  // While a cycle is at work, its run is in the way.
  const queue = ['enqueue', 'portal', '--input', '{"n":7}']
  await until('a moment between', async () => (await stage.unstuck(...queue).end()) === 0)
  await repeated.says(/input \{"n":7\}[^]*starts again/)
  repeated.signal('SIGTERM')
  assert.equal(await repeated.end(), 0, 'between cycles nothing is left undone')
  assert.equal(await stage.unstuck('run', 'portal', '--', 'true').end(), 0)
})

test('with a timetable the source is held from the start; a stop before its time leaves nothing undone', async () => {
  await using stage = await Stage.set(sqlite!)
  const program = stage.unstuck('run', 'portal', '--cron', '0 0 1 1 *', '--', 'true')
  await program.says('first run in')
  assert.equal(await stage.unstuck('run', 'portal', '--', 'true').end(), 5)
  assert.equal(await stage.unstuck('check', 'portal').end(), 5)
  program.signal('SIGTERM')
  assert.equal(await program.end(), 0)
})

test('stopped while it waits for a program of one’s own: exit 75', async () => {
  await using stage = await Stage.set(sqlite!)
  const own = stage.module(
    'own.ts',
    `const unstuck = await open({ db: process.env.UNSTUCK_DB })
     await unstuck.begin('portal')
     mark('begun')
     await opened('never')`,
  )
  stage.start([own])
  await stage.marked('begun')
  const waiting = stage.unstuck('run', 'portal', '--if-running', 'wait', '--', 'true')
  await waiting.says('waiting: portal is already running')
  waiting.signal('SIGTERM')
  assert.equal(await waiting.end(), 75, waiting.output)
  assert.doesNotMatch(waiting.output, /E_UNEXPECTED/)
})

test('killed -9: the guardian ends the tree, and a new copy waits for that, whatever it was told (P13)', async () => {
  await using stage = await Stage.set(sqlite!)
  const command = ticker(stage)
  const first = stage.unstuck('run', 'portal', '--kill-timeout', '1s', '--', ...command)
  await until('both tick', () => new Set(ticks(stage).map(({ who }) => who)).size === 2)
  first.signal('SIGKILL')
  // The default, fail: but who is ending will be gone.
  const second = stage.unstuck('run', 'portal', '--kill-timeout', '1s', '--', ...command)
  await until('the second copy', () => new Set(ticks(stage).map(({ copy }) => copy)).size === 2)
  second.signal('SIGTERM')
  assert.equal(await second.end(), 75)
  await stage.assertNobodyLeft()
  assert.deepEqual(overlaps(ticks(stage)), [])
})

test('killed -9, and nobody starts it again: the guardian ends the tree all the same, and frees the source (P13)', async () => {
  await using stage = await Stage.set(sqlite!)
  const program = stage.unstuck('run', 'portal', '--kill-timeout', '300ms', '--', ...ticker(stage))
  await until('both tick', () => new Set(ticks(stage).map(({ who }) => who)).size === 2)
  program.signal('SIGKILL')
  await stage.assertNobodyLeft()
  const guard = await (await stage.store()).guard('portal')
  assert.equal(guard?.worker, null)
})

test('Unstuck and its guardian killed -9 together: the next start ends what they left, and then begins', async () => {
  await using stage = await Stage.set(sqlite!)
  const command = ticker(stage)
  const first = stage.unstuck('run', 'portal', '--', ...command)
  await until('both tick', () => new Set(ticks(stage).map(({ who }) => who)).size === 2)
  const guardian = await guardianOf(first)
  first.signal('SIGKILL')
  kill(guardian, 'SIGKILL')
  await first.end()
  const then = ticks(stage).length
  await until('the orphans go on', () => ticks(stage).length > then + 20)
  const second = stage.unstuck('run', 'portal', '--kill-timeout', '300ms', '--', 'echo', 'alone')
  assert.equal(await second.end(), 0)
  assert.match(second.output, /ended \d+ process(es)? that an earlier copy had left/)
  await stage.assertNobodyLeft()
  const log = readFileSync(join(stage.folder, 'ticks'), 'utf8')
  assert.ok(log.length > 0)
})

test('a guardian that is stopped for longer than its lease: its tree is ended by the next start (P1)', async () => {
  await using stage = await Stage.set(sqlite!)
  stage.config({ portal: { heartbeat: '200ms', lease: '1s' } })
  const command = ticker(stage)
  const first = stage.unstuck('run', 'portal', '--', ...command)
  await until('both tick', () => new Set(ticks(stage).map(({ who }) => who)).size === 2)
  const guardian = await guardianOf(first)
  await stage.freeze({ pid: guardian })
  const second = stage.unstuck(
    'run',
    'portal',
    '--if-running',
    'wait',
    '--kill-timeout',
    '500ms',
    '--',
    ...command,
  )
  await until('the second copy', () => new Set(ticks(stage).map(({ copy }) => copy)).size === 2)
  second.signal('SIGTERM')
  await second.end()
  // Whichever it hears of first: that its command was killed, or that its source is another's.
  const code = await first.end()
  assert.ok(code === 137 || code === 6, `it ended with ${code}`)
  await stage.assertNobodyLeft()
  assert.deepEqual(overlaps(ticks(stage)), [])
})

test('the guardian alone killed -9: the command goes with it, and with restarts a new one takes its place', async () => {
  await using stage = await Stage.set(sqlite!)
  const command = ticker(stage)
  const restarts = '--restart on-failure --restart-delay 50ms --kill-timeout 200ms'.split(' ')
  const program = stage.unstuck('run', 'portal', ...restarts, '--', ...command)
  await until('both tick', () => new Set(ticks(stage).map(({ who }) => who)).size === 2)
  kill(await guardianOf(program), 'SIGKILL')
  await until('the second copy', () => new Set(ticks(stage).map(({ copy }) => copy)).size === 2)
  assert.match(program.output, /A new guardian takes its place/)
  program.signal('SIGTERM')
  assert.equal(await program.end(), 75)
  await stage.assertNobodyLeft()
  assert.deepEqual(overlaps(ticks(stage)), [])
})
