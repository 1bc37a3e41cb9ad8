import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Owner } from '../core/recovery/assess.ts'
import { evidenceSentences, ownerView } from './view.ts'

const worker = {
  presence: 'free',
  presenceKind: 'file',
  process: 'gone',
  heartbeatAgeMs: 40_000,
  heartbeatMs: 1_000,
  leaseMs: 15_000,
  loopLagMs: 3,
  host: 'crawl-2',
  pid: 4711,
}

test('evidence about a worker is shown in sentences, strongest first', () => {
  assert.deepEqual(evidenceSentences(worker), [
    'The kernel has freed its lock, which only the end of the process does.',
    'Process 4711 on crawl-2 no longer exists.',
    'Its last heartbeat was 40 s old; one is due every 1 s, and after 15 s it counts as silent.',
  ])
})

test('a lock that cannot be observed is not called free, and a missing lock is reported as none', () => {
  const [unseen] = evidenceSentences({ ...worker, presence: 'unknown' })
  assert.equal(unseen, 'Its lock cannot be observed from here.')
  const [none] = evidenceSentences({ ...worker, presenceKind: 'none', presence: 'unknown' })
  assert.equal(none, 'It holds no lock: only heartbeats count.')
  const [session] = evidenceSentences({ ...worker, presenceKind: 'session' })
  assert.equal(session, 'Its database session has ended and freed its lock.')
})

test('evidence about an adopted owner comes from its table or alive()', () => {
  const unseen = { presence: 'unknown', presenceKind: 'none', process: 'unknown' }
  const row = { ...worker, ...unseen, label: 'row 7 of jobs' }
  assert.deepEqual(evidenceSentences(row), [
    'Its last heartbeat was 40 s old, and after 15 s it counts as silent.',
  ])
  assert.equal(
    evidenceSentences({ ...row, process: 'gone' })[0],
    'Its process 4711 no longer exists on crawl-2.',
  )
  assert.deepEqual(evidenceSentences({ ...row, neverBeat: true }), ['It never sent a heartbeat.'])
  assert.deepEqual(evidenceSentences({ ...row, aliveCheck: 'gone' }), [
    'The config’s alive() returned false.',
  ])
})

test('activity, or a start, is not shown as a heartbeat', () => {
  const one = { source: 'jobs', process: {}, startedAt: 1, lastHeartbeatAt: 2 }
  const assessment = { liveness: 'present', because: 'it moves' }
  const at = (evidence: object): unknown =>
    ownerView({ worker: one, evidence, assessment } as unknown as Owner).lastHeartbeatAt
  assert.deepEqual(
    [at({}), at({ isActivity: true }), at({ neverBeat: true })],
    ['1970-01-01T00:00:00.002Z', null, null],
  )
})

test('a busy main thread is named, because it may explain missing heartbeats', () => {
  assert.equal(
    evidenceSentences({ ...worker, loopLagMs: 4_000 }).at(-1),
    'Its main thread had been busy for 4 s at that heartbeat.',
  )
})

test('evidence about a run is its age, its progress and its owner', () => {
  const run = {
    ageMs: 9e7,
    idleMs: 9e7,
    pages: 0,
    extracted: 0,
    unchanged: 0,
    skipped: 0,
    hasProgress: false,
  }
  assert.deepEqual(evidenceSentences({ ...run, owner: null }), [
    'The run was 25 h old; nothing of it has changed for 25 h.',
    'Pages saved: 0, items extracted: 0, unchanged: 0, skipped: 0: there is no progress to continue from.',
    'No owner is known.',
  ])
  assert.equal(evidenceSentences({ ...run, owner: worker }).length, 5)
})

test('evidence of an unknown shape gives no sentence and no error', () => {
  for (const strange of [null, undefined, 3, 'x', [], {}, { presence: {} }, { owner: 7 }])
    assert.ok(evidenceSentences(strange).every((one) => typeof one === 'string'))
  assert.deepEqual(evidenceSentences(null), [])
})
