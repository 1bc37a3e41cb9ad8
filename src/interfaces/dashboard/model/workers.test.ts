import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Worker } from '../shapes.ts'
import { sortWorkers } from './workers.ts'

const worker = (id: string, liveness: Worker['liveness'], source = 'shop', host = 'a'): Worker => ({
  id,
  liveness,
  source,
  host,
  pid: 1,
  label: null,
  because: '',
  targets: 0,
  startedAt: '2026-11-16T00:00:00.000Z',
  lastHeartbeatAt: '2026-11-16T00:00:00.000Z',
})

test('lost workers are on top, and a heartbeat moves no row', () => {
  const list = [
    worker('1', 'present'),
    worker('2', 'gone', 'yard'),
    worker('3', 'silent'),
    worker('4', 'gone', 'shop', 'b'),
    worker('5', 'gone', 'shop', 'a'),
    worker('6', 'stalled'),
  ]
  const ids = (of: Worker[]) => sortWorkers(of).map(({ id }) => id)
  assert.deepEqual(ids(list), ['5', '4', '2', '3', '6', '1'])
  assert.deepEqual(ids(list.toReversed()), ids(list))
})
