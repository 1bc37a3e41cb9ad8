import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compareFields, namesOne, totalsBySource } from './history.ts'

test('one line per source: the newest operation first, and the most frequent action', () => {
  const at = (hour: number) => `2026-11-16T0${hour}:00:00.000Z`
  const sums = totalsBySource([
    { source: 'shop', action: 'park', count: 2, lastAt: at(1) },
    { source: 'yard', action: 'resume', count: 1, lastAt: at(5) },
    { source: 'shop', action: 'resume', count: 7, lastAt: at(3) },
  ])
  assert.deepEqual(sums, [
    { source: 'yard', actions: [{ action: 'resume', count: 1 }], total: 1, lastAt: at(5) },
    {
      source: 'shop',
      actions: [
        { action: 'resume', count: 7 },
        { action: 'park', count: 2 },
      ],
      total: 9,
      lastAt: at(3),
    },
  ])
  assert.deepEqual(totalsBySource([]), [])
})

test('a recovered target: its status moved, the rest is what was known of it then', () => {
  const before = { status: 'in_progress', epoch: 3, worker: 'w-1', page: 14 }
  assert.deepEqual(compareFields(before, { status: 'planned' }), {
    changed: [{ what: 'status', from: 'in progress', to: 'planned' }],
    known: [
      { what: 'epoch', value: '3' },
      { what: 'worker', value: 'w-1' },
      { what: 'page', value: '14' },
    ],
  })
})

test('a retry: what is new has no before', () => {
  const { changed } = compareFields({ status: 'running' }, { status: 'failed', newRun: 'r-2' })
  assert.deepEqual(changed, [
    { what: 'status', from: 'running', to: 'failed' },
    { what: 'new run', from: null, to: 'r-2' },
  ])
})

test('requeued targets: from which status, and how many are planned now', () => {
  const { changed, known } = compareFields(
    { status: 'failed', targets: { failed: 3, parked: 1 } },
    { status: 'interrupted', targets: { planned: 4 } },
  )
  assert.deepEqual(changed, [
    { what: 'status', from: 'failed', to: 'interrupted' },
    { what: 'targets failed', from: '3', to: null },
    { what: 'targets parked', from: '1', to: null },
    { what: 'targets planned', from: null, to: '4' },
  ])
  assert.deepEqual(known, [])
})

test('unchanged fields are not shown, and unexpected values cause no error', () => {
  assert.deepEqual(compareFields({ status: 'failed' }, { status: 'failed' }).changed, [])
  for (const side of [null, undefined, 'x', 7, []])
    assert.deepEqual(compareFields(side, side), { changed: [], known: [] })
})

test('what the action says already is no field: only how many targets it was about', () => {
  const acknowledged = compareFields({ acknowledged: false }, { acknowledged: true, count: 46 })
  assert.deepEqual(acknowledged, { changed: [], known: [{ what: 'targets', value: '46' }] })
  const reverted = compareFields(
    { status: 'cancelled' },
    { status: 'interrupted', undoes: 'cancel', targets: 0 },
  )
  assert.deepEqual(
    reverted.changed.map(({ what }) => what),
    ['status'],
  )
  assert.deepEqual(reverted.known, [])
})

test('a call without a selection is about what its path names, or about all', () => {
  assert.ok(namesOne('POST /api/runs/019a2b3c/cancel'))
  assert.ok(namesOne('POST /api/sources/shop/pause'))
  assert.ok(!namesOne('POST /api/recover'))
})
