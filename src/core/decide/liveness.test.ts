import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Evidence, Sign } from '../model/worker.ts'
import { sessionGraceMs } from '../model/worker.ts'
import { readSign, STEADY, watchMs, type Judge } from './liveness.ts'

const ALIVE: Evidence = {
  presence: 'held',
  presenceKind: 'file',
  process: 'alive',
  beatAgeMs: 400,
  heartbeatMs: 1_000,
  leaseMs: 15_000,
  loopLagMs: 0,
  host: 'box',
  pid: 42,
}
const shaken: Judge = { beatsInARow: 5, steadyForMs: 3_000, connectedForMs: 3_000 }
const newcomer: Judge = { ...STEADY, beatsInARow: 5, connectedForMs: 4_999 }
/** A worker in another container, or on another host, whose session lock is free. */
const CUT_OFF: Partial<Evidence> = {
  presenceKind: 'session',
  presence: 'free',
  process: 'unknown',
  beatAgeMs: 5_001,
}

const cases: [string, Partial<Evidence>, Judge, Sign, RegExp][] = [
  ['a lock that is held and a fresh beat', {}, STEADY, 'present', /alive: last beat 400 ms ago/],
  [
    'a lock file that the kernel freed',
    { presence: 'free' },
    STEADY,
    'gone',
    /kernel freed its lock/,
  ],
  [
    'a lock file that is free, before a beat was missed',
    { presence: 'free', beatAgeMs: 0, process: 'unknown' },
    STEADY,
    'gone',
    /process 42 on box has ended/,
  ],
  [
    'a process that no longer exists',
    { presence: 'unknown', process: 'gone' },
    STEADY,
    'gone',
    /no longer exists/,
  ],
  [
    'a lock file nobody can say anything about, and a fresh beat',
    { presence: 'unknown', process: 'unknown' },
    STEADY,
    'present',
    /alive/,
  ],
  [
    'a stopped process: it holds its lock and does not beat',
    { beatAgeMs: 15_001 },
    STEADY,
    'silent',
    /silent: last beat 15 s ago, its lease is 15 s/,
  ],
  ['a beat as old as the lease', { beatAgeMs: 15_000 }, STEADY, 'present', /./],
  [
    'a free session lock and a third of the lease without a heartbeat, on another host',
    CUT_OFF,
    STEADY,
    'gone',
    /process 42 on box lost its database session \(last beat 5 s ago\)/,
  ],
  [
    'a free session lock and exactly a third of the lease without a heartbeat',
    { ...CUT_OFF, beatAgeMs: 5_000 },
    STEADY,
    'present',
    /alive/,
  ],
  [
    'a free session lock and one missed heartbeat, where three heartbeats are longer than a third of the lease',
    { ...CUT_OFF, heartbeatMs: 3_000 },
    STEADY,
    'present',
    /alive/,
  ],
  [
    'a free session lock of a process that the kernel of this host shows as alive',
    { ...CUT_OFF, process: 'alive', beatAgeMs: 15_000 },
    STEADY,
    'present',
    /alive/,
  ],
  [
    'the same process, one lease without a heartbeat',
    { ...CUT_OFF, process: 'alive', beatAgeMs: 15_001 },
    STEADY,
    'silent',
    /its lease is 15 s/,
  ],
  [
    'a session lock that is held on another host',
    { ...CUT_OFF, presence: 'held' },
    STEADY,
    'present',
    /./,
  ],
  ['a free session lock, but the judge was cut off itself', CUT_OFF, shaken, 'present', /./],
  [
    'a free session lock, but the judge connected less than that long ago',
    CUT_OFF,
    newcomer,
    'present',
    /./,
  ],
  [
    'a beat older than the lease, but the judge was cut off itself',
    { beatAgeMs: 20_000 },
    shaken,
    'unknown',
    /the judge was cut off too/,
  ],
  [
    'the same, one lease later',
    { beatAgeMs: 35_000 },
    { beatsInARow: 9, steadyForMs: 15_000, connectedForMs: 15_000 },
    'silent',
    /./,
  ],
  [
    'a dead process on this host, the judge cut off until now',
    { presence: 'unknown', process: 'gone' },
    shaken,
    'gone',
    /./,
  ],
  [
    'a judge that has beaten only once',
    { presence: 'free', process: 'gone', beatAgeMs: 99_999 },
    { ...STEADY, beatsInARow: 1 },
    'unknown',
    /not been heard twice/,
  ],
  [
    'no lock at all behind a pooler, and a fresh beat',
    { presenceKind: 'none', presence: 'unknown', beatAgeMs: 14_000 },
    STEADY,
    'present',
    /./,
  ],
]

for (const [title, evidence, judge, sign, because] of cases) {
  test(`${title}: ${sign}`, () => {
    const reading = readSign({ ...ALIVE, ...evidence }, judge)

    assert.equal(reading.sign, sign)
    assert.match(reading.because, because)
  })
}

const anyEvidence: fc.Arbitrary<Evidence> = fc.record({
  presence: fc.constantFrom('held' as const, 'free' as const, 'unknown' as const),
  presenceKind: fc.constantFrom('file' as const, 'session' as const, 'none' as const),
  process: fc.constantFrom('alive' as const, 'gone' as const, 'unknown' as const),
  beatAgeMs: fc.nat(100_000),
  heartbeatMs: fc.integer({ min: 50, max: 5_000 }),
  leaseMs: fc.integer({ min: 15_000, max: 60_000 }),
  loopLagMs: fc.nat(100_000),
  host: fc.string(),
  pid: fc.nat(),
})
const anyJudge: fc.Arbitrary<Judge> = fc.record({
  beatsInARow: fc.oneof(fc.nat(5), fc.constant(Infinity)),
  steadyForMs: fc.oneof(fc.nat(100_000), fc.constant(Infinity)),
  connectedForMs: fc.oneof(fc.nat(100_000), fc.constant(Infinity)),
})

test('always: P9 who beats within its lease is not silent, and gone only by proof', () => {
  fc.assert(
    fc.property(anyEvidence, anyJudge, (evidence, judge) => {
      const { sign, because } = readSign(evidence, judge)
      assert.ok(because.length > 0)
      if (evidence.beatAgeMs > evidence.leaseMs) return
      assert.notEqual(sign, 'silent')
      if (sign !== 'gone') return
      const proven =
        evidence.process === 'gone' ||
        (evidence.presenceKind === 'file' && evidence.presence === 'free')
      const graceMs = Math.max(evidence.leaseMs / 3, 3 * evidence.heartbeatMs)
      const lostAndLate =
        evidence.presenceKind === 'session' &&
        evidence.presence === 'free' &&
        evidence.beatAgeMs > graceMs &&
        judge.connectedForMs >= graceMs
      assert.ok(proven || lostAndLate)
    }),
    { numRuns: 2_000 },
  )
})

test('always: P9 a session lock proves nothing about a process that is alive: only its lease counts', () => {
  fc.assert(
    fc.property(anyEvidence, anyJudge, fc.constantFrom('held', 'free'), (any, judge, presence) => {
      const evidence: Evidence = { ...any, presenceKind: 'session', process: 'alive', presence }
      const unlocked: Evidence = { ...evidence, presenceKind: 'none', presence: 'unknown' }
      const { sign } = readSign(evidence, judge)
      assert.equal(sign, readSign(unlocked, judge).sign)
      assert.notEqual(sign, 'gone')
    }),
  )
})

test('always: a process that has just connected watches before it believes what is not proven', () => {
  fc.assert(
    fc.property(anyEvidence, (evidence) => {
      const { sign } = readSign(evidence, STEADY)
      const connectedForMs = watchMs(evidence)
      assert.equal(readSign(evidence, { ...STEADY, connectedForMs }).sign, sign, 'long enough')
      const isProven =
        evidence.process === 'gone' ||
        (evidence.presenceKind === 'file' && evidence.presence === 'free')
      assert.equal(connectedForMs > 0, !isProven && (sign === 'gone' || sign === 'silent'))
      if (sign === 'gone' && !isProven) assert.equal(connectedForMs, sessionGraceMs(evidence))
    }),
  )
})

test('always: the busy event loop of a worker that beats is no sign of death', () => {
  fc.assert(
    fc.property(anyEvidence, anyJudge, fc.nat(1_000_000), (evidence, judge, loopLagMs) => {
      assert.deepEqual(readSign({ ...evidence, loopLagMs }, judge), readSign(evidence, judge))
    }),
  )
})

test('always: a judge who was just cut off presumes nobody dead', () => {
  fc.assert(
    fc.property(anyEvidence, fc.nat(14_999), (evidence, steadyForMs) => {
      const { sign } = readSign(evidence, {
        beatsInARow: 3,
        steadyForMs,
        connectedForMs: steadyForMs,
      })
      assert.notEqual(sign, 'silent')
      if (evidence.presenceKind === 'session' && evidence.process !== 'gone') {
        assert.notEqual(sign, 'gone')
      }
    }),
  )
})
