import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  decideNextCycle,
  interpretExit,
  NO_RESTARTS,
  shellExitCode,
  type CommandExit,
  type CycleExit,
  type ExitOutcome,
  type NextCycle,
  type RestartHistory,
  type RestartPolicy,
} from './ending.ts'

const EXITED: CommandExit = {
  exitCode: 0,
  signal: null,
  oomKills: 0,
  errorLine: null,
  stop: null,
  reported: null,
}
const KILLED: CommandExit = { ...EXITED, exitCode: null, signal: 'SIGKILL' }
const ASKED = { why: 'asked', by: 'SIGTERM' } as const

const CASES: readonly [string, CommandExit, ExitOutcome['run'], RegExp][] = [
  ['exit code 0 is a success', EXITED, 'succeed', /^exit code 0$/],
  ['any other is a crash', { ...EXITED, exitCode: 3 }, 'crash', /^exit code 3$/],
  ['a signal of another process is a kill', KILLED, 'killed', /by another process/],
  [
    'a signal of its own fault is a crash',
    { ...KILLED, signal: 'SIGSEGV' },
    'crash',
    /^ended by SIGSEGV$/,
  ],
  [
    'when the kernel reports a lack of memory, probably that',
    { ...KILLED, oomKills: 1 },
    'killed',
    /probably out of memory/,
  ],
  [
    'what was asked to stop is released',
    { ...KILLED, stop: ASKED },
    'release',
    /stopped by SIGTERM; ended by SIGKILL/,
  ],
  [
    'even with exit code 0: only /finish says that nothing is left',
    { ...EXITED, stop: ASKED },
    'release',
    /exit code 0/,
  ],
  [
    'what finished while it was asked to stop is finished',
    { ...EXITED, stop: ASKED, reported: 'finished' },
    'settled',
    /^finished/,
  ],
  [
    'what said that it failed has failed, whatever its exit code',
    { ...EXITED, reported: 'failed' },
    'settled',
    /reported a failure/,
  ],
  ['what asked for another try gets it', { ...EXITED, reported: 'again' }, 'settled', /again/],
  [
    'a lost lease counts before everything else',
    { ...KILLED, stop: { why: 'lease-lost' }, reported: 'finished' },
    'lost',
    /taken over/,
  ],
  [
    'a cancelled run stays cancelled',
    { ...KILLED, stop: { why: 'cancelled' } },
    'cancelled',
    /cancelled/,
  ],
  [
    'too long is a crash',
    { ...KILLED, stop: { why: 'max-duration', limitMs: 60_000 } },
    'crash',
    /timeout: longer than 60 s/,
  ],
  [
    'too much memory is a crash',
    { ...KILLED, stop: { why: 'max-memory', limit: 400 * 1_048_576, seen: 500 * 1_048_576 } },
    'crash',
    /500 MB of memory, more than 400 MB/,
  ],
  [
    'a ready that did not come is a crash',
    { ...KILLED, stop: { why: 'not-ready', limitMs: 30_000 } },
    'crash',
    /not ready within 30 s/,
  ],
  [
    'without its watchdog it is an orphan',
    { ...KILLED, stop: { why: 'watchdog-lost' } },
    'orphan',
    /watchdog process died/,
  ],
]
for (const [what, end, run, because] of CASES) {
  test(what, () => {
    const ending = interpretExit(end)
    assert.equal(ending.run, run)
    assert.match(ending.because, because)
  })
}

test('the error line of stderr belongs to a failure of its own, and to no other end', () => {
  const errorLine = 'ValueError: no page'
  const because = (end: Partial<CommandExit>): string =>
    interpretExit({ ...EXITED, errorLine, ...end }).because
  assert.equal(because({ exitCode: 1 }), 'exit code 1: ValueError: no page')
  assert.equal(
    because({ exitCode: null, signal: 'SIGABRT' }),
    'ended by SIGABRT: ValueError: no page',
  )
  const others: Partial<CommandExit>[] = [
    { exitCode: 0 },
    { exitCode: 1, stop: ASKED },
    { exitCode: 1, stop: { why: 'cancelled' } },
    { exitCode: 1, stop: { why: 'max-duration', limitMs: 1_000 } },
    { exitCode: 1, reported: 'failed' },
    { exitCode: null, signal: 'SIGKILL' },
    { exitCode: null, signal: 'SIGTERM' },
  ]
  for (const end of others) assert.doesNotMatch(because(end), /ValueError/, JSON.stringify(end))
})

test('exit codes are passed on as a shell would', () => {
  const signals = { SIGKILL: 9, SIGTERM: 15 }
  assert.equal(shellExitCode({ exitCode: 7, signal: null }, signals), 7)
  assert.equal(shellExitCode({ exitCode: null, signal: 'SIGTERM' }, signals), 143)
  assert.equal(shellExitCode({ exitCode: null, signal: null }, signals), 1)
})

const PLAN: RestartPolicy = {
  restart: 'on-failure',
  intervalMs: null,
  delayMs: 10_000,
  max: 5,
  windowMs: 15 * 60_000,
  minUptimeMs: 30_000,
}
const FAILED: CycleExit = { outcome: 'failed', uptimeMs: 1_000, progressed: false }
const DONE: CycleExit = { outcome: 'succeeded', uptimeMs: 1_000, progressed: true }

function next(plan: Partial<RestartPolicy>, end: CycleExit, tick: number | null = null): NextCycle {
  return decideNextCycle({ ...PLAN, ...plan }, end, NO_RESTARTS, 0, tick)
}

/** What becomes of a command that always ends like this: when it is started, and why no more. */
function simulate(
  plan: RestartPolicy,
  end: CycleExit,
  limit: number,
): { starts: number[]; gaveUp: boolean } {
  const starts = [0]
  let trail: RestartHistory = NO_RESTARTS
  for (let now = end.uptimeMs; starts.length < limit;) {
    const decision = decideNextCycle(plan, end, trail, now, null)
    if (decision.action !== 'start') return { starts, gaveUp: decision.action === 'give-up' }
    trail = decision.history
    starts.push(now + decision.inMs)
    now += decision.inMs + end.uptimeMs
  }
  return { starts, gaveUp: false }
}

const RESTART_CASES: readonly [
  string,
  Partial<RestartPolicy>,
  CycleExit,
  number | null,
  number | 'end' | 'give-up',
][] = [
  ['a success ends it', {}, DONE, null, 'end'],
  ['a success is followed by the next cycle', { intervalMs: 30_000 }, DONE, null, 30_000],
  ['a success waits for the timetable', {}, DONE, 3_600_000, 3_600_000],
  ['a success of one that is to run always', { restart: 'always' }, DONE, null, 10_000],
  ['a failure is started again', {}, FAILED, null, 10_000],
  ['a failure does not wait for the timetable', {}, FAILED, 3_600_000, 10_000],
  ['never means never', { restart: 'never' }, FAILED, null, 'end'],
  ['but the next cycle comes', { restart: 'never', intervalMs: 30_000 }, FAILED, null, 30_000],
  ['and the timetable goes on', { restart: 'never' }, FAILED, 60_000, 60_000],
  [
    'what cannot be started is not',
    { restart: 'always' },
    { ...FAILED, outcome: 'unstartable' },
    null,
    'end',
  ],
  [
    'a cancelled one is not started again',
    { restart: 'always' },
    { ...FAILED, outcome: 'cancelled' },
    null,
    'end',
  ],
  [
    'a parked one needs attention',
    { restart: 'always' },
    { ...FAILED, outcome: 'parked' },
    null,
    'give-up',
  ],
  [
    'but its next cycle comes',
    { intervalMs: 5_000 },
    { ...FAILED, outcome: 'cancelled' },
    null,
    5_000,
  ],
]
for (const [what, plan, end, tick, expected] of RESTART_CASES) {
  test(what, () => {
    const decision = next(plan, end, tick)
    assert.equal(decision.action === 'start' ? decision.inMs : decision.action, expected)
  })
}

test('a command that dies at once is restarted with growing delays, then given up', () => {
  const { starts, gaveUp } = simulate(PLAN, FAILED, 100)
  assert.equal(gaveUp, true)
  const pauses = starts.slice(1).map((at, i) => at - starts[i]! - FAILED.uptimeMs)
  assert.deepEqual(pauses, [10_000, 20_000, 40_000, 80_000, 160_000])
})

test('a crash loop slower than the minimum uptime is given up as well', () => {
  const { starts, gaveUp } = simulate(PLAN, { ...FAILED, uptimeMs: 60_000 }, 100)
  assert.equal(gaveUp, true)
  assert.equal(starts.length, 1 + PLAN.max)
})

test('failures further apart than the window are never given up', () => {
  assert.equal(simulate(PLAN, { ...FAILED, uptimeMs: 4 * 60_000 }, 50).gaveUp, false)
})

test('a command that makes progress before each crash is restarted for ever, without back-off', () => {
  const { starts, gaveUp } = simulate(PLAN, { ...FAILED, progressed: true }, 50)
  assert.equal(gaveUp, false)
  assert.ok(starts.every((at, i) => at === i * 11_000))
})

test('no more restarts within any window than allowed, whatever the failures look like', () => {
  const uptimes = fc.array(fc.integer({ min: 0, max: 10 * 60_000 }), { maxLength: 60 })
  const plans = fc.record({
    max: fc.integer({ min: 0, max: 6 }),
    delayMs: fc.integer({ min: 0, max: 20_000 }),
  })
  fc.assert(
    fc.property(uptimes, plans, (ends, given) => {
      const plan = { ...PLAN, ...given }
      let [trail, now] = [NO_RESTARTS, 0]
      const restarts: number[] = []
      for (const uptimeMs of ends) {
        now += uptimeMs
        const decision = decideNextCycle(plan, { ...FAILED, uptimeMs }, trail, now, null)
        if (decision.action !== 'start') break
        trail = decision.history
        now += decision.inMs
        restarts.push(now)
      }
      for (const at of restarts) {
        const within = restarts.filter((other) => other <= at && other > at - plan.windowMs)
        assert.ok(within.length <= plan.max)
      }
    }),
  )
})
