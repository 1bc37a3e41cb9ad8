import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Evidence, Sign } from '../model/worker.ts'
import { readSign, STEADY, type Judge } from './sign.ts'

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
const shaken: Judge = { beatsInARow: 5, steadyForMs: 3_000 }

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
    'a database session that was lost, and fresh beats',
    { presenceKind: 'session', presence: 'free', beatAgeMs: 1_900 },
    STEADY,
    'present',
    /./,
  ],
  [
    'a database session that was lost, and two missed beats',
    { presenceKind: 'session', presence: 'free', beatAgeMs: 2_001, process: 'unknown' },
    STEADY,
    'gone',
    /lost its database session and missed two beats/,
  ],
  [
    'the same, but the judge was cut off itself',
    { presenceKind: 'session', presence: 'free', beatAgeMs: 2_001, process: 'unknown' },
    shaken,
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
    { beatsInARow: 9, steadyForMs: 15_000 },
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
    { beatsInARow: 1, steadyForMs: Infinity },
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
      const lostAndLate =
        evidence.presenceKind === 'session' &&
        evidence.presence === 'free' &&
        evidence.beatAgeMs > 2 * evidence.heartbeatMs
      assert.ok(proven || lostAndLate)
    }),
    { numRuns: 2_000 },
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
      const { sign } = readSign(evidence, { beatsInARow: 3, steadyForMs })
      assert.notEqual(sign, 'silent')
      if (evidence.presenceKind === 'session' && evidence.process !== 'gone') {
        assert.notEqual(sign, 'gone')
      }
    }),
  )
})
