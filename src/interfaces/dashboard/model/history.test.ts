import assert from 'node:assert/strict'
import { test } from 'node:test'
import { totalsBySource } from './history.ts'

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
