import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Guard } from '../model/source-lock.ts'
import type { Evidence } from '../model/worker.ts'
import { decideGuard, type Holder } from './source-lock.ts'
import { readSign, STEADY } from './liveness.ts'

const GUARD: Guard = {
  source: 'portal',
  worker: 'w',
  since: 0,
  killTimeoutMs: 30_000,
  endingSince: null,
  cookie: 'c',
  gaveUp: null,
}

const ALIVE: Evidence = {
  presence: 'held',
  presenceKind: 'file',
  process: 'alive',
  beatAgeMs: 400,
  heartbeatMs: 1_000,
  leaseMs: 15_000,
  loopLagMs: 0,
  host: 'h',
  pid: 7,
}

function holder(evidence: Partial<Evidence>, isHere = true): Holder {
  const whole = { ...ALIVE, ...evidence }
  return { evidence: whole, reading: readSign(whole, STEADY), isHere }
}

test('a source that nobody holds may start', () => {
  assert.equal(decideGuard(null, null).action, 'take')
  assert.equal(decideGuard({ ...GUARD, worker: null }, null).action, 'take')
  assert.equal(decideGuard(GUARD, null).action, 'take', 'its holder has ended')
})

test('a living holder is in the way, and is named', () => {
  const advice = decideGuard(GUARD, holder({}))
  assert.equal(advice.action, 'refuse')
  assert.match(advice.because, /process 7 on h is alive/)
})

test('a holder that is ending its command is waited for', () => {
  assert.equal(decideGuard({ ...GUARD, endingSince: 5 }, holder({})).action, 'wait')
})

test('a dead holder on this machine: its tree is ended before anything starts', () => {
  const gone = holder({ presence: 'free', process: 'gone' })
  assert.equal(decideGuard(GUARD, gone).action, 'end-tree')
  assert.equal(decideGuard({ ...GUARD, endingSince: 5 }, gone).action, 'end-tree')
})

test('a holder on this machine that was stopped for longer than its lease is ended with its tree', () => {
  assert.equal(decideGuard(GUARD, holder({ beatAgeMs: 15_001 })).action, 'end-tree')
})

test('a living process that only lost its database session keeps its source until its lease is over', () => {
  const cut = { presenceKind: 'session', presence: 'free' } as const
  assert.equal(decideGuard(GUARD, holder({ ...cut, beatAgeMs: 14_000 })).action, 'refuse')
  assert.equal(decideGuard(GUARD, holder({ ...cut, beatAgeMs: 15_001 })).action, 'end-tree')
})

test('a lock file that is free while its process is alive is no reason to kill it', () => {
  assert.equal(decideGuard(GUARD, holder({ presence: 'free' })).action, 'wait')
})

test('on another machine nothing is proven: it waits lease and kill timeout, and says so', () => {
  const early = decideGuard(GUARD, holder({ process: 'unknown', beatAgeMs: 44_000 }, false))
  assert.equal(early.action, 'wait')
  assert.match(early.because, /cannot be seen from here/)
  const late = decideGuard(GUARD, holder({ process: 'unknown', beatAgeMs: 45_001 }, false))
  assert.equal(late.action, 'take')
  assert.match(late.because, /not proven/)
})

test('a dead holder in another container is not believed to have taken its command with it', () => {
  const freed = holder({ presence: 'free', process: 'unknown', beatAgeMs: 2_000 }, false)
  assert.equal(decideGuard(GUARD, freed).action, 'wait')
})
