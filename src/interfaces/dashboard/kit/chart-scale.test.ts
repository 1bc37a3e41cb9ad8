import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  currentAndPeak,
  linear,
  nearest,
  pointAfterKey,
  measuredRanges,
  timeLabel,
  timeTicks,
  valueLabel,
  valueTicks,
  type ChartPoint,
} from './chart-scale.ts'

const zone = process.env['TZ']
before(() => {
  process.env['TZ'] = 'Asia/Kolkata' // half an hour off, so that local and UTC hours differ
})
after(() => {
  if (zone === undefined) delete process.env['TZ']
  else process.env['TZ'] = zone
})

const points = (...values: (number | null)[]): ChartPoint[] =>
  values.map((value, index) => ({ at: new Date(index * 60_000).toISOString(), value }))

test('the value axis begins at 0, ends at or above the highest and has few round steps', () => {
  for (const [max, isWhole, expected] of [
    [0, true, [0, 1]],
    [1, true, [0, 1]],
    [3, true, [0, 1, 2, 3]],
    [7, true, [0, 2, 4, 6, 8]],
    [12.5, false, [0, 5, 10, 15]],
    [0.3, false, [0, 0.1, 0.2, 0.3]],
    [40, true, [0, 10, 20, 30, 40]],
    [41, true, [0, 20, 40, 60]],
    [98_000, true, [0, 50_000, 100_000]],
  ] as const)
    assert.deepEqual(valueTicks(max, isWhole), expected, `highest ${max}`)
  for (let max = 0.001; max < 1e9; max *= 1.37) {
    const ticks = valueTicks(max, false)
    assert.equal(ticks[0], 0)
    assert.ok(ticks.at(-1)! >= max * 0.999 && ticks.length <= 5, `${max}: ${ticks.join()}`)
  }
})

test('the time axis has round moments of the local clock, as many as there is room for', () => {
  const from = Date.parse('2026-11-16T01:07:00Z') // 06:37 in Kolkata
  const labels = (spanMinutes: number, room: number) =>
    timeTicks(from, from + spanMinutes * 60_000, room).map(timeLabel)
  assert.deepEqual(labels(60, 4), ['06:45', '07:00', '07:15', '07:30'])
  assert.deepEqual(labels(60, 2), ['07:00', '07:30'])
  assert.deepEqual(labels(24 * 60, 5), ['12:00', '18:00', '17 Nov', '06:00'])
  assert.deepEqual(labels(7 * 24 * 60, 4), ['17 Nov', '19 Nov', '21 Nov', '23 Nov'])
  assert.deepEqual(timeTicks(from, from, 4), [])
  assert.deepEqual(labels(17 / 60, 4), ['06:37', '06:37:05', '06:37:10', '06:37:15'])
})

test('a step without a sample is a gap in the line, not a zero', () => {
  assert.deepEqual(measuredRanges(points(1, 2, null, 0, null, null, 5)), [[0, 1], [3], [6]])
  assert.deepEqual(measuredRanges(points(null)), [])
})

test('the newest value is told only while it is fresh; the highest unless it is 0', () => {
  assert.deepEqual(currentAndPeak(points(9, 3, null)), { now: 3, peak: points(9)[0] })
  assert.equal(currentAndPeak(points(9, null, null, null)).now, null)
  assert.deepEqual(currentAndPeak(points()), { now: null, peak: null })
  assert.deepEqual(currentAndPeak(points(0, 0)), { now: 0, peak: null })
})

test('values are as short as they stay honest', () => {
  const said = [0, 0.25, 0.456, 12.54, 840.4, 12_400, 1_240_000].map(valueLabel)
  assert.deepEqual(said, ['0', '0.25', '0.46', '12.5', '840', '12,400', '1.2M'])
})

test('a place is found from the scale and back', () => {
  const x = linear(0, 100, 40, 640)
  assert.deepEqual([x(0), x(50), x(100)], [40, 340, 640])
  assert.equal(nearest([40, 340, 640], 480), 1)
  assert.equal(nearest([], 3), null)
  assert.equal(linear(5, 5, 0, 10)(5), 0, 'a range without width')
})

test('arrow keys walk along the points and stop at the ends; other keys mean nothing', () => {
  assert.equal(pointAfterKey('ArrowLeft', null, 5), 4)
  assert.equal(pointAfterKey('ArrowLeft', 0, 5), 0)
  assert.equal(pointAfterKey('ArrowRight', 4, 5), 4)
  assert.equal(pointAfterKey('Home', 3, 5), 0)
  assert.equal(pointAfterKey('PageUp', 30, 60), 20)
  assert.equal(pointAfterKey('x', 3, 5), null)
  assert.equal(pointAfterKey('ArrowLeft', null, 0), null)
})
