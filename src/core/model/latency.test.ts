import assert from 'node:assert/strict'
import { test } from 'node:test'
import { add, count, LATENCY_BOUNDS, noLatency, noStats, readStats } from './latency.ts'

test('a call is counted into the first step that holds it, its upper end included', () => {
  const latency = noLatency()
  for (const seconds of [0, 0.001, 0.0011, 10, 10.5, 3_600]) count(latency, seconds)
  assert.equal(latency.counts[0], 2)
  assert.equal(latency.counts[1], 1)
  assert.equal(latency.counts[LATENCY_BOUNDS.length - 1], 1)
  assert.equal(latency.counts[LATENCY_BOUNDS.length], 2)
  assert.equal(latency.seconds.toFixed(4), '3620.5021')
})

test('what several have counted adds up', () => {
  const [one, other] = [noLatency(), noLatency()]
  for (const seconds of [0.02, 4]) count(one, seconds)
  count(other, 0.02)
  add(one, other)
  assert.equal(
    one.counts.reduce((sum, n) => sum + n, 0),
    3,
  )
  assert.equal(one.counts[LATENCY_BOUNDS.indexOf(0.025)], 2)
  assert.equal(one.seconds.toFixed(2), '4.04')
})

test('stats read back as they were sent; others are passed over', () => {
  const stats = noStats()
  count(stats.claim, 0.3)
  assert.deepEqual(readStats(JSON.parse(JSON.stringify(stats))), stats)
  const few = { counts: [1, 2], seconds: 1 }
  const negative = { counts: noLatency().counts.map(() => -1), seconds: 1 }
  const text = { counts: noLatency().counts, seconds: '1' }
  for (const odd of [null, undefined, 7, 'x', [], {}, { ...stats, claim: few }]) {
    assert.equal(readStats(odd), null)
  }
  for (const claim of [negative, text, null]) assert.equal(readStats({ ...stats, claim }), null)
})
