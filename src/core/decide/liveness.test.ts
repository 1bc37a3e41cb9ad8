import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { sessionGraceMs, type Evidence, type Liveness } from '../model/worker.ts'
import {
  assessLiveness,
  TRUSTED_OBSERVER,
  requiredObservationMs,
  type ObserverHealth,
} from './liveness.ts'

const ALIVE: Evidence = {
  presence: 'held',
  presenceKind: 'file',
  process: 'alive',
  heartbeatAgeMs: 400,
  heartbeatMs: 1_000,
  leaseMs: 15_000,
  loopLagMs: 0,
  host: 'box',
  pid: 42,
}
const unstableObserver: ObserverHealth = {
  consecutiveHeartbeats: 5,
  stableForMs: 3_000,
  connectedForMs: 3_000,
}
const newObserver: ObserverHealth = {
  ...TRUSTED_OBSERVER,
  consecutiveHeartbeats: 5,
  connectedForMs: 4_999,
}
/** A worker in another container, or on another host, whose session lock is free. */
const DISCONNECTED: Partial<Evidence> = {
  presenceKind: 'session',
  presence: 'free',
  process: 'unknown',
  heartbeatAgeMs: 5_001,
}

const cases: [string, Partial<Evidence>, ObserverHealth, Liveness, RegExp][] = [
  [
    'a lock that is held and a fresh beat',
    {},
    TRUSTED_OBSERVER,
    'present',
    /alive: last heartbeat just now$/,
  ],
  [
    'a lock file that the kernel freed',
    { presence: 'free' },
    TRUSTED_OBSERVER,
    'gone',
    /kernel freed its lock/,
  ],
  [
    'a lock file that is free, before a beat was missed',
    { presence: 'free', heartbeatAgeMs: 0, process: 'unknown' },
    TRUSTED_OBSERVER,
    'gone',
    /process 42 on box has ended/,
  ],
  [
    'a process that no longer exists',
    { presence: 'unknown', process: 'gone' },
    TRUSTED_OBSERVER,
    'gone',
    /no longer exists/,
  ],
  [
    'a lock file of unknown state, and a fresh heartbeat',
    { presence: 'unknown', process: 'unknown' },
    TRUSTED_OBSERVER,
    'present',
    /alive/,
  ],
  [
    'a stopped process: it holds its lock and does not beat',
    { heartbeatAgeMs: 15_001 },
    TRUSTED_OBSERVER,
    'silent',
    /silent: last heartbeat 15 s ago, its lease is 15 s/,
  ],
  ['a beat as old as the lease', { heartbeatAgeMs: 15_000 }, TRUSTED_OBSERVER, 'present', /./],
  [
    'a free session lock and a third of the lease without a heartbeat, on another host',
    DISCONNECTED,
    TRUSTED_OBSERVER,
    'gone',
    /process 42 on box lost its database session \(last heartbeat 5 s ago\)/,
  ],
  [
    'a free session lock and exactly a third of the lease without a heartbeat',
    { ...DISCONNECTED, heartbeatAgeMs: 5_000 },
    TRUSTED_OBSERVER,
    'present',
    /alive/,
  ],
  [
    'a free session lock and one missed heartbeat, where three heartbeats are longer than a third of the lease',
    { ...DISCONNECTED, heartbeatMs: 3_000 },
    TRUSTED_OBSERVER,
    'present',
    /alive/,
  ],
  [
    'a free session lock of a process that the kernel of this host shows as alive',
    { ...DISCONNECTED, process: 'alive', heartbeatAgeMs: 15_000 },
    TRUSTED_OBSERVER,
    'present',
    /alive/,
  ],
  [
    'the same process, one lease without a heartbeat',
    { ...DISCONNECTED, process: 'alive', heartbeatAgeMs: 15_001 },
    TRUSTED_OBSERVER,
    'silent',
    /its lease is 15 s/,
  ],
  [
    'a session lock that is held on another host',
    { ...DISCONNECTED, presence: 'held' },
    TRUSTED_OBSERVER,
    'present',
    /./,
  ],
  [
    'a free session lock, but the observer was cut off itself',
    DISCONNECTED,
    unstableObserver,
    'present',
    /./,
  ],
  [
    'a free session lock, but the judge connected less than that long ago',
    DISCONNECTED,
    newObserver,
    'present',
    /./,
  ],
  [
    'a beat older than the lease, but the observer was cut off itself',
    { heartbeatAgeMs: 20_000 },
    unstableObserver,
    'unknown',
    /the observer was cut off too: unknown until one lease has passed, in \d+ s$/,
  ],
  [
    'a heartbeat of yesterday, in a database that has just been started',
    { heartbeatAgeMs: 27 * 3_600_000, leaseMs: 300_000, serverUpMs: 43_000 },
    TRUSTED_OBSERVER,
    'unknown',
    /27 h ago, but its database started only 43 s ago: unknown until one lease has passed, in 4 min$/,
  ],
  [
    'the same, one lease later',
    { heartbeatAgeMs: 35_000 },
    { consecutiveHeartbeats: 9, stableForMs: 15_000, connectedForMs: 15_000 },
    'silent',
    /./,
  ],
  [
    'a dead process on this host, the judge cut off until now',
    { presence: 'unknown', process: 'gone' },
    unstableObserver,
    'gone',
    /./,
  ],
  [
    'an observer with only one heartbeat',
    { presence: 'free', process: 'gone', heartbeatAgeMs: 99_999 },
    { ...TRUSTED_OBSERVER, consecutiveHeartbeats: 1 },
    'unknown',
    /not sent two heartbeats/,
  ],
  [
    'no lock at all behind a pooler, and a fresh beat',
    { presenceKind: 'none', presence: 'unknown', heartbeatAgeMs: 14_000 },
    TRUSTED_OBSERVER,
    'present',
    /./,
  ],
]

for (const [title, evidence, judge, sign, because] of cases) {
  test(`${title}: ${sign}`, () => {
    const reading = assessLiveness({ ...ALIVE, ...evidence }, judge)

    assert.equal(reading.liveness, sign)
    assert.match(reading.because, because)
  })
}

const anyEvidence: fc.Arbitrary<Evidence> = fc.record({
  presence: fc.constantFrom('held' as const, 'free' as const, 'unknown' as const),
  presenceKind: fc.constantFrom('file' as const, 'session' as const, 'none' as const),
  process: fc.constantFrom('alive' as const, 'gone' as const, 'unknown' as const),
  heartbeatAgeMs: fc.nat(100_000),
  heartbeatMs: fc.integer({ min: 50, max: 5_000 }),
  leaseMs: fc.integer({ min: 15_000, max: 60_000 }),
  loopLagMs: fc.nat(100_000),
  host: fc.string(),
  pid: fc.nat(),
})
const anyObserver: fc.Arbitrary<ObserverHealth> = fc.record({
  consecutiveHeartbeats: fc.oneof(fc.nat(5), fc.constant(Infinity)),
  stableForMs: fc.oneof(fc.nat(100_000), fc.constant(Infinity)),
  connectedForMs: fc.oneof(fc.nat(100_000), fc.constant(Infinity)),
})

test('always: P9 a worker that heartbeats within its lease is not silent, and gone only by proof', () => {
  fc.assert(
    fc.property(anyEvidence, anyObserver, (evidence, judge) => {
      const { liveness, because } = assessLiveness(evidence, judge)
      assert.ok(because.length > 0)
      if (evidence.heartbeatAgeMs > evidence.leaseMs) return
      assert.notEqual(liveness, 'silent')
      if (liveness !== 'gone') return
      const proven =
        evidence.process === 'gone' ||
        (evidence.presenceKind === 'file' && evidence.presence === 'free')
      const graceMs = Math.max(evidence.leaseMs / 3, 3 * evidence.heartbeatMs)
      const lostAndLate =
        evidence.presenceKind === 'session' &&
        evidence.presence === 'free' &&
        evidence.heartbeatAgeMs > graceMs &&
        judge.connectedForMs >= graceMs
      assert.ok(proven || lostAndLate)
    }),
    { numRuns: 2_000 },
  )
})

test('always: P9 a session lock proves nothing about a process that is alive: only its lease counts', () => {
  fc.assert(
    fc.property(
      anyEvidence,
      anyObserver,
      fc.constantFrom('held', 'free'),
      (any, judge, presence) => {
        const evidence: Evidence = { ...any, presenceKind: 'session', process: 'alive', presence }
        const unlocked: Evidence = { ...evidence, presenceKind: 'none', presence: 'unknown' }
        const { liveness } = assessLiveness(evidence, judge)
        assert.equal(liveness, assessLiveness(unlocked, judge).liveness)
        assert.notEqual(liveness, 'gone')
      },
    ),
  )
})

test('always: a process that just connected waits before it acts on unproven evidence', () => {
  fc.assert(
    fc.property(anyEvidence, (evidence) => {
      const { liveness } = assessLiveness(evidence, TRUSTED_OBSERVER)
      const connectedForMs = requiredObservationMs(evidence)
      assert.equal(
        assessLiveness(evidence, { ...TRUSTED_OBSERVER, connectedForMs }).liveness,
        liveness,
        'long enough',
      )
      const isProven =
        evidence.process === 'gone' ||
        (evidence.presenceKind === 'file' && evidence.presence === 'free')
      assert.equal(connectedForMs > 0, !isProven && (liveness === 'gone' || liveness === 'silent'))
      if (liveness === 'gone' && !isProven) assert.equal(connectedForMs, sessionGraceMs(evidence))
    }),
  )
})

test('always: a busy event loop does not make a heartbeating worker dead', () => {
  fc.assert(
    fc.property(anyEvidence, anyObserver, fc.nat(1_000_000), (evidence, judge, loopLagMs) => {
      assert.deepEqual(
        assessLiveness({ ...evidence, loopLagMs }, judge),
        assessLiveness(evidence, judge),
      )
    }),
  )
})

test('always: an observer that was just disconnected presumes no worker dead', () => {
  fc.assert(
    fc.property(anyEvidence, fc.nat(14_999), (evidence, steadyForMs) => {
      const { liveness } = assessLiveness(evidence, {
        consecutiveHeartbeats: 3,
        stableForMs: steadyForMs,
        connectedForMs: steadyForMs,
      })
      assert.notEqual(liveness, 'silent')
      if (evidence.presenceKind === 'session' && evidence.process !== 'gone') {
        assert.notEqual(liveness, 'gone')
      }
    }),
  )
})
