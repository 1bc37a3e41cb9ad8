import assert from 'node:assert/strict'
import { test } from 'node:test'
import { splitSummary, isStuck, worstFirst } from './overview.ts'

test('the one line is the start of the sentence, the rest its detail', () => {
  assert.deepEqual(
    splitSummary({ summary: 'Something is stuck: 2 runs healthy, 1 run stuck for 12 min.' }),
    {
      line: 'Something is stuck.',
      detail: '2 runs healthy, 1 run stuck for 12 min.',
    },
  )
  assert.deepEqual(splitSummary({ summary: 'Nothing is stuck, and nothing is running.' }), {
    line: 'Nothing is stuck, and nothing is running.',
    detail: '',
  })
})

test('stuck runs sort above healthy ones, and newer above older within the same health', () => {
  const run = (health: 'healthy' | 'orphaned' | 'stalled' | null, createdAt: string) => ({
    health,
    createdAt,
  })
  const runs = [run('healthy', '1'), run('stalled', '2'), run('healthy', '3'), run('orphaned', '4')]
  assert.deepEqual(
    worstFirst(runs).map(({ createdAt }) => createdAt),
    ['4', '2', '3', '1'],
  )
  assert.deepEqual(runs.map(isStuck), [false, true, false, true])
})
