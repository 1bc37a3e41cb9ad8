import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cutUnsampled, meanPerMinute, perMinute, totalPace } from './series.ts'

const AT = '2026-11-16T12:00:00.000Z'

test('a longer step is not a faster run: counts become rates, and a missing sample stays missing', () => {
  const series = {
    since: AT,
    until: AT,
    stepSeconds: 300,
    points: [
      { at: AT, measuredSeconds: 300, pages: 100, items: 7, recoveries: 0 },
      { at: AT, measuredSeconds: 0, pages: null, items: null, recoveries: 0 },
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
    points: pages.map((value) => ({
      at: AT,
      measuredSeconds: value === null ? 0 : 60,
      pages: value,
      items: value,
      recoveries: 0,
    })),
  })
  const shown = (...pages: (number | null)[]) =>
    cutUnsampled(series(...pages)).points.map((point) => point.pages)
  assert.deepEqual(shown(null, null, null, 4, null, 6, null), [4, null, 6])
  assert.deepEqual(shown(1, null, null, null), [1, null, null, null], 'nothing samples any more')
  assert.deepEqual(shown(null, null), [null, null])
})

test('a step that was measured in part has the rate of that part, and no peak of a moment', () => {
  const point = (pages: number, measuredSeconds: number) => ({
    at: AT,
    measuredSeconds,
    pages,
    items: 0,
    recoveries: 0,
  })
  const minutes = { since: AT, until: AT, stepSeconds: 60, points: [point(246, 15), point(9, 1)] }
  const rates = perMinute(minutes, 'pages').map(({ value }) => value)
  assert.deepEqual(rates, [984, 54], 'a second alone is too short for a rate')
  assert.equal(cutUnsampled(minutes).points.length, 1)
  assert.equal(meanPerMinute(minutes, 'pages'), 956)
  const seconds = { ...minutes, stepSeconds: 1, points: [point(20, 1), point(28, 1.4)] }
  assert.deepEqual(
    perMinute(seconds, 'pages').map(({ value }) => value),
    [1_200, 1_200],
  )
  assert.equal(meanPerMinute({ ...minutes, points: [] }, 'pages'), null)
})

test('the pace of all runs is that of the listed ones together; unknown while none is known', () => {
  const pace = { pagesPerMinute: 4.5, itemsPerMinute: 20, etaSeconds: null }
  assert.equal(totalPace([{ pace }, { pace: null }, { pace }])?.pagesPerMinute, 9)
  assert.equal(totalPace([{ pace: null }]), null)
})
