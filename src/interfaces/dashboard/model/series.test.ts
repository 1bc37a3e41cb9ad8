import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rangeOf, perMinute } from './series.ts'

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

test('a run is shown from its beginning, or for as long as samples are kept', () => {
  const now = Date.parse(AT)
  const created = (hours: number) => new Date(now - hours * 3_600_000).toISOString()
  assert.deepEqual(
    [0.2, 5, 20, 60, 900].map((hours) => rangeOf(created(hours), now)),
    ['1h', '6h', '24h', '3d', '7d'],
  )
})

test('a run is shown from its start to its end, not the time around it', () => {
  const at = (minute: number) => new Date(Date.parse(AT) + minute * 60_000).toISOString()
  const points = [0, 1, 2, 3].map((minute) => ({
    at: at(minute),
    pages: 1,
    items: 1,
    recoveries: 0,
  }))
  const series = { since: at(0), until: at(3), stepSeconds: 60, points }
  const shown = (to: string | null) =>
    perMinute(series, 'pages', { from: at(1), to }).map(({ at }) => at)
  assert.deepEqual(shown(at(2)), [at(1), at(2)])
  assert.deepEqual(shown(null), [at(1), at(2), at(3)])
})
