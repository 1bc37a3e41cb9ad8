import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Sample } from '../features/metrics/store/store.ts'
import { buildSeries, buildShortSeries, runRange, seriesRange, type SeriesPoint } from './series.ts'

const MINUTE = 60_000
const T0 = Date.UTC(2026, 10, 16, 10, 0)
const SPAN = { since: T0, until: T0 + 6 * MINUTE, stepMs: MINUTE }

/** An id that was made then. */
function run(n: number, bornAt: number): string {
  const time = bornAt.toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-00000000000${n}`
}

const OLD = run(1, T0 - 86_400_000)

/** At so many minutes after the start. */
function sample(minutes: number, pages: number, id = OLD, items = pages * 10): Sample {
  return { at: T0 + minutes * MINUTE, run: id, source: 'shop', pages, items, done: 0 }
}

const ENDED = { runs: new Set<string>(), now: T0 + 6 * MINUTE }

const pagesOf = (samples: Sample[], live = ENDED) =>
  buildSeries(samples, [], SPAN, live).map(({ pages }) => pages)

for (const [what, samples, expected] of [
  ['nothing was sampled', [], [null, null, null, null, null, null]],
  [
    'the difference of two samples belongs to the minute between them',
    [sample(0, 100), sample(1, 104), sample(2, 104), sample(3, 110)],
    [4, 0, 6, null, null, null],
  ],
  [
    'samples come a moment late, and one before the first step is the base',
    [sample(-0.99, 50), sample(0.01, 53), sample(1.01, 60), sample(2.01, 61)],
    [7, 1, null, null, null, null],
  ],
  ['a count that went back counts as still', [sample(0, 9), sample(1, 2)], [0, ...nulls(5)]],
  [
    'what was done in a gap is left out, and the gap is shown',
    [sample(0, 1), sample(1, 3), sample(5, 900), sample(6, 904)],
    [2, null, null, null, null, 4],
  ],
  [
    'a run that has stood still for long is where it was until it is sampled again',
    [...minutes(-30, 1).map((at) => sample(at, 3)), sample(5, 12), sample(6, 16)],
    [0, 0, 0, 0, 9, 4],
  ],
  ['one sample an hour is enough then', [sample(-9, 3), sample(51, 3)], [0, 0, 0, 0, 0, 0]],
  ['but not one in two', [sample(-9, 3), sample(111, 3)], nulls(6)],
  [
    'one sample that is missing leaves no gap',
    [sample(0, 1), sample(2, 5)],
    [0, 4, null, null, null, null],
  ],
  [
    'a run that began between two samples counts from nothing',
    [sample(3, 7, run(2, T0 + 130_000))],
    [...nulls(2), 7, ...nulls(3)],
  ],
  ['an old run with its first sample has no pace yet', [sample(3, 7)], nulls(6)],
  [
    'a run that began after its first sample, by another clock, counts from nothing',
    [sample(1, 7, run(2, T0 + 3_600_000))],
    [null, 7, ...nulls(4)],
  ],
  [
    'runs add up',
    [sample(0, 1), sample(0, 10, run(2, 0)), sample(1, 3), sample(1, 15, run(2, 0)), sample(2, 4)],
    [7, 1, null, null, null, null],
  ],
  [
    'what was before and after is left out',
    [sample(-9, 1), sample(-8, 3), sample(20, 9), sample(21, 99)],
    nulls(6),
  ],
] as const) {
  test(what, () => assert.deepEqual(pagesOf([...samples]), expected))
}

test('a live run that stands still goes on doing so until now; one that has ended is over', () => {
  const samples = [sample(-20, 7), sample(-19, 7, run(2, 0))]
  const now = T0 + 5.4 * MINUTE
  assert.deepEqual(pagesOf(samples, { runs: new Set([OLD]), now }), [0, 0, 0, 0, null, null])
  assert.deepEqual(pagesOf(samples, { runs: new Set(), now }), nulls(6))
  const long = { runs: new Set([OLD]), now }
  assert.deepEqual(pagesOf([sample(-70, 7)], long), nulls(6), 'there was no sample for so long')
  const moved = [sample(-9, 7), sample(-8, 9)]
  assert.deepEqual(pagesOf(moved, long), nulls(6), 'there are no more samples')
})

test('a step says how much of it was measured: a young run began within one', () => {
  const young = run(2, T0 + 45_000)
  const samples = [sample(0.8, 50, young), sample(1, 246, young), sample(1.25, 500, young)]
  const measured = (of: Sample[]) =>
    buildSeries(of, [], SPAN, ENDED).map(({ measuredMs }) => measuredMs / 1_000)
  assert.deepEqual(measured(samples), [15, 15, 0, 0, 0, 0])
  const old = [sample(0, 1), sample(1, 9), sample(2, 9)]
  assert.deepEqual(measured([...samples, ...old]), [60, 60, 0, 0, 0, 0], 'beside an older run')
})

test('items go as pages do, and recoveries into their steps', () => {
  const recoveries = [
    { at: T0 + 60_000, count: 2 },
    { at: T0 + 119_999, count: 1 },
    { at: T0 - 1, count: 5 },
    { at: T0 + 6 * MINUTE, count: 5 },
  ]
  const points = buildSeries([sample(0, 0), sample(1, 2)], recoveries, SPAN, ENDED)
  const measuredMs = MINUTE
  assert.deepEqual(points[0], { at: T0, measuredMs, pages: 2, items: 20, recoveries: 0 })
  assert.deepEqual(points[1], {
    at: T0 + MINUTE,
    measuredMs: 0,
    pages: null,
    items: null,
    recoveries: 3,
  })
  assert.equal(
    points.reduce((sum, { recoveries }) => sum + recoveries, 0),
    3,
  )
})

for (const [hours, stepMinutes, points] of [
  [1 / 60, 1, 1],
  [0.25, 1, 15],
  [1, 1, 60],
  [2, 1, 120],
  [3, 1, 180],
  [6, 2, 180],
  [24, 10, 144],
  [7 * 24, 60, 168],
  [365 * 24, 60, 180],
] as const) {
  test(`${hours} h are shown in ${points} steps of ${stepMinutes} min on round times, the last with now in it`, () => {
    const now = T0 + 17 * MINUTE + 12_345
    const { since, until, stepMs } = seriesRange(hours * 60 * MINUTE, now)
    assert.equal(stepMs, stepMinutes * MINUTE)
    assert.equal((until - since) / stepMs, points)
    assert.equal(until % stepMs, 0)
    assert.ok(until > now && until - stepMs <= now)
  })
}

describe('a run is shown from its start to its end', () => {
  const WEEK = 7 * 24 * 60 * MINUTE
  const DAY_LATER = T0 + 24 * 60 * MINUTE
  const runOf = (ms: number, pages = 281) => ({
    createdAt: T0 - MINUTE,
    startedAt: T0,
    finishedAt: T0 + ms,
    counts: { pages, itemsNew: pages * 10, itemsUpdated: 0 },
  })

  for (const [name, ms, steps, stepMs, pages] of [
    ['281 pages in 17 s', 17_400, 17, 1_000],
    ['less than a second', 300, 1, 1_000],
    ['ten minutes', 10 * MINUTE, 60, 10_000],
    ['ten minutes with 40 pages, each step with some', 10 * MINUTE, 12, 50_000, 40],
    ['fifteen minutes', 15 * MINUTE, 16, MINUTE],
    ['a day', 24 * 60 * MINUTE, 145, 10 * MINUTE],
  ] as const) {
    test(`${name}: in ${steps} steps, however long ago`, () => {
      const { since, until, stepMs: found } = runRange(runOf(ms, pages), WEEK, DAY_LATER + WEEK)
      assert.deepEqual([found, (until - since) / found], [stepMs, steps])
      assert.ok(since <= T0 && since > T0 - found && until > T0 + ms - found)
    })
  }

  test('a short one has all its pages in its steps, with and without samples', () => {
    const short = runOf(17_400)
    const range = runRange(short, WEEK, DAY_LATER)
    const seconds = (...pages: [second: number, pages: number][]) =>
      pages.map(([second, count]) => sample(second / 60, count))
    for (const samples of [[], seconds([1, 3], [2, 90], [3, 90], [4, 120], [40, 281])]) {
      const points = buildShortSeries(samples, [], range, short, DAY_LATER)
      const sum = (read: (point: SeriesPoint) => number | null) =>
        points.reduce((total, point) => total + read(point)!, 0)
      assert.deepEqual([sum(({ pages }) => pages), sum(({ items }) => items)], [281, 2_810])
    }
    const flat = buildShortSeries([], [], range, short, DAY_LATER)
    assert.ok(
      flat.slice(0, -1).every(({ pages }) => pages === 16 || pages === 17),
      'an even pace',
    )
    const sampled = buildShortSeries(seconds([1, 3], [2, 90], [3, 90]), [], range, short, DAY_LATER)
    assert.deepEqual(
      sampled.slice(0, 3).map(({ pages }) => pages),
      [3, 87, 0],
    )
  })

  test('the last step says how long it is, so that its rate is no higher than the others', () => {
    const short = runOf(14_400, 288)
    const range = runRange(short, WEEK, DAY_LATER)
    const last = buildShortSeries([], [], range, short, DAY_LATER).at(-1)!
    assert.deepEqual([last.measuredMs, last.pages], [1_400, 28])
  })

  test('one that was rewound has no negative pace', () => {
    const points = buildShortSeries([sample(0.1, 300)], [], SPAN, runOf(30_000, 5), DAY_LATER)
    assert.ok(points.every(({ pages }) => pages! >= 0))
  })
})

function minutes(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, n) => from + n)
}

function nulls(count: number): null[] {
  return Array.from({ length: count }, () => null)
}
