import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cutUnsampled, perMinute } from './series.ts'

const AT = '2026-11-16T12:00:00.000Z'

test('a longer step is not a faster run: counts become rates, and a missing sample stays missing', () => {
  const series = {
    since: AT,
    until: AT,
    stepSeconds: 300,
    points: [
      { at: AT, pages: 100, items: 7, recoveries: 0 },
      { at: AT, pages: null, items: null, recoveries: 0 },
    ],
  }
  assert.deepEqual(
    perMinute(series, 'pages').map(({ value }) => value),
    [20, null],
  )
  assert.deepEqual(
    perMinute(series, 'items').map(({ value }) => value),
    [1.4, null],
  )
})

test('a history shorter than the chart begins with its first sample; a gap in it stays', () => {
  const series = (...pages: (number | null)[]) => ({
    since: AT,
    until: AT,
    stepSeconds: 60,
    points: pages.map((value) => ({ at: AT, pages: value, items: value, recoveries: 0 })),
  })
  const shown = (...pages: (number | null)[]) =>
    cutUnsampled(series(...pages)).points.map((point) => point.pages)
  assert.deepEqual(shown(null, null, null, 4, null, 6, null), [4, null, 6])
  assert.deepEqual(shown(1, null, null, null), [1, null, null, null], 'nothing samples any more')
  assert.deepEqual(shown(null, null), [null, null])
})
