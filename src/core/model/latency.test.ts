import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  addHistogram,
  recordLatency,
  LATENCY_BUCKETS,
  emptyHistogram,
  emptyStats,
  parseStats,
} from './latency.ts'

test('a call is counted into the first step that holds it, its upper end included', () => {
  const latency = emptyHistogram()
  for (const seconds of [0, 0.001, 0.0011, 10, 10.5, 3_600]) recordLatency(latency, seconds)
  assert.equal(latency.counts[0], 2)
  assert.equal(latency.counts[1], 1)
  assert.equal(latency.counts[LATENCY_BUCKETS.length - 1], 1)
  assert.equal(latency.counts[LATENCY_BUCKETS.length], 2)
  assert.equal(latency.seconds.toFixed(4), '3620.5021')
})

test('counts of several processes add up', () => {
  const [one, other] = [emptyHistogram(), emptyHistogram()]
  for (const seconds of [0.02, 4]) recordLatency(one, seconds)
  recordLatency(other, 0.02)
  addHistogram(one, other)
  assert.equal(
    one.counts.reduce((sum, n) => sum + n, 0),
    3,
  )
  assert.equal(one.counts[LATENCY_BUCKETS.indexOf(0.025)], 2)
  assert.equal(one.seconds.toFixed(2), '4.04')
})

test('stats read back as they were sent; others are passed over', () => {
  const stats = emptyStats()
  recordLatency(stats.claim, 0.3)
  assert.deepEqual(parseStats(JSON.parse(JSON.stringify(stats))), stats)
  const few = { counts: [1, 2], seconds: 1 }
  const negative = { counts: emptyHistogram().counts.map(() => -1), seconds: 1 }
  const text = { counts: emptyHistogram().counts, seconds: '1' }
  for (const odd of [null, undefined, 7, 'x', [], {}, { ...stats, claim: few }]) {
    assert.equal(parseStats(odd), null)
  }
  for (const claim of [negative, text, null]) assert.equal(parseStats({ ...stats, claim }), null)
})
