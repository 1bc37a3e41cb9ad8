import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answerOf, isStuck, wayOut, worstFirst } from './overview.ts'

test('the one line is the start of the sentence, the rest its detail', () => {
  assert.deepEqual(
    answerOf({ summary: 'Something is stuck: 2 runs healthy, 1 run stuck for 12 min.' }),
    {
      line: 'Something is stuck.',
      detail: '2 runs healthy, 1 run stuck for 12 min.',
    },
  )
  assert.deepEqual(answerOf({ summary: 'Nothing is stuck, and nothing is running.' }), {
    line: 'Nothing is stuck, and nothing is running.',
    detail: '',
  })
})

test('what is stuck stands above what is well, and within the same health the newest does', () => {
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

test('what had an owner is recovered first, what never had one is cleaned', () => {
  const way = (...healths: ('healthy' | 'orphaned' | 'stalled' | 'dead')[]) =>
    wayOut(healths.map((health) => ({ health })))
  assert.equal(way('healthy', 'orphaned', 'dead'), 'recover')
  assert.equal(way('healthy', 'stalled', 'dead'), 'clean')
  assert.equal(way('stalled'), 'recover')
})
