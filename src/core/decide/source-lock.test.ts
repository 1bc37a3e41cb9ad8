import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SourceLock } from '../model/source-lock.ts'
import type { Evidence } from '../model/worker.ts'
import { decideSourceLock, type LockHolder } from './source-lock.ts'
import { assessLiveness, TRUSTED_OBSERVER } from './liveness.ts'

const SOURCE_LOCK: SourceLock = {
  source: 'portal',
  worker: 'w',
  since: 0,
  killTimeoutMs: 30_000,
  unlockingSince: null,
  processTag: 'c',
  gaveUp: null,
}

const ALIVE: Evidence = {
  presence: 'held',
  presenceKind: 'file',
  process: 'alive',
  heartbeatAgeMs: 400,
  heartbeatMs: 1_000,
  leaseMs: 15_000,
  loopLagMs: 0,
  host: 'h',
  pid: 7,
}

function makeHolder(evidence: Partial<Evidence>, isHere = true): LockHolder {
  const whole = { ...ALIVE, ...evidence }
  return { evidence: whole, assessment: assessLiveness(whole, TRUSTED_OBSERVER), isLocal: isHere }
}

test('an unlocked source may start', () => {
  assert.equal(decideSourceLock(null, null).action, 'take')
  assert.equal(decideSourceLock({ ...SOURCE_LOCK, worker: null }, null).action, 'take')
  assert.equal(decideSourceLock(SOURCE_LOCK, null).action, 'take', 'its holder has ended')
})

test('a live holder blocks the start, and is named', () => {
  const advice = decideSourceLock(SOURCE_LOCK, makeHolder({}))
  assert.equal(advice.action, 'refuse')
  assert.match(advice.because, /process 7 on h is alive/)
})

test('a holder on another host that may have ended blocks the start until a time that is named', () => {
  const elsewhere = { presenceKind: 'session', process: 'unknown', heartbeatAgeMs: 5_000 } as const
  const advice = decideSourceLock(SOURCE_LOCK, makeHolder(elsewhere, false))
  assert.equal(advice.action, 'refuse')
  assert.match(
    advice.because,
    /cannot be seen .*, the lock is free in 40 s \(its lease and kill timeout\)/,
  )
  const cut = makeHolder({ ...elsewhere, presence: 'free', heartbeatAgeMs: 1_000 }, false)
  assert.equal(decideSourceLock(SOURCE_LOCK, cut).action, 'wait', 'its connection is gone')
  const onFile = makeHolder({ ...elsewhere, presenceKind: 'file' }, false)
  assert.doesNotMatch(decideSourceLock(SOURCE_LOCK, onFile).because, /cannot be seen/)
})

test('a holder that is ending its command is waited for', () => {
  assert.equal(
    decideSourceLock({ ...SOURCE_LOCK, unlockingSince: 5 }, makeHolder({})).action,
    'wait',
  )
})

test('a dead holder on this machine: its tree is ended before anything starts', () => {
  const gone = makeHolder({ presence: 'free', process: 'gone' })
  assert.equal(decideSourceLock(SOURCE_LOCK, gone).action, 'end-tree')
  assert.equal(decideSourceLock({ ...SOURCE_LOCK, unlockingSince: 5 }, gone).action, 'end-tree')
})

test('a holder on this machine that was stopped for longer than its lease is ended with its tree', () => {
  assert.equal(
    decideSourceLock(SOURCE_LOCK, makeHolder({ heartbeatAgeMs: 15_001 })).action,
    'end-tree',
  )
})

test('a living process that only lost its database session keeps its source until its lease is over', () => {
  const cut = { presenceKind: 'session', presence: 'free' } as const
  assert.equal(
    decideSourceLock(SOURCE_LOCK, makeHolder({ ...cut, heartbeatAgeMs: 14_000 })).action,
    'refuse',
  )
  assert.equal(
    decideSourceLock(SOURCE_LOCK, makeHolder({ ...cut, heartbeatAgeMs: 15_001 })).action,
    'end-tree',
  )
})

test('a lock file that is free while its process is alive is no reason to kill it', () => {
  assert.equal(decideSourceLock(SOURCE_LOCK, makeHolder({ presence: 'free' })).action, 'wait')
})

test('on another machine nothing is proven: it waits lease and kill timeout, and reports so', () => {
  const early = decideSourceLock(
    SOURCE_LOCK,
    makeHolder({ process: 'unknown', heartbeatAgeMs: 44_000 }, false),
  )
  assert.equal(early.action, 'wait')
  assert.match(early.because, /cannot be seen from here/)
  const late = decideSourceLock(
    SOURCE_LOCK,
    makeHolder({ process: 'unknown', heartbeatAgeMs: 45_001 }, false),
  )
  assert.equal(late.action, 'take')
  assert.match(late.because, /not proven/)
})

test('a dead holder in another container is not believed to have taken its command with it', () => {
  const freed = makeHolder({ presence: 'free', process: 'unknown', heartbeatAgeMs: 2_000 }, false)
  assert.equal(decideSourceLock(SOURCE_LOCK, freed).action, 'wait')
})
