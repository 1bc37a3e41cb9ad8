import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { computePace, paceOf, type ProgressPoint } from './pace.ts'
import type { Pace } from './records.ts'
import type { Run } from '../core/model/run.ts'

const MINUTE = 60_000

/** Minute, pages, items, done. */
function mark(minute: number, pages: number, items = 0, done = 0): ProgressPoint {
  return { at: 1e12 + minute * MINUTE, pages, items, done }
}

type Case = [what: string, marks: ProgressPoint[], open: number | null, expected: Pace | null]

const CASES: Case[] = [
  ['nothing is known', [], 10, null],
  ['one mark alone', [mark(0, 50)], 10, null],
  ['two marks that are too close', [mark(0, 50), mark(0.1, 90)], 10, null],
  [
    'a steady pace',
    [mark(0, 0), mark(1, 60, 600, 25), mark(4, 240, 2_400, 100)],
    100,
    { pagesPerMinute: 60, itemsPerMinute: 600, etaSeconds: { from: 218, to: 264 } },
  ],
  [
    'what is older than five minutes does not count',
    [mark(0, 0), mark(10, 1_000), mark(15, 1_050, 0, 25)],
    0,
    { pagesPerMinute: 10, itemsPerMinute: 0, etaSeconds: { from: 0, to: 0 } },
  ],
  [
    'after one target it may take half as long, or twice',
    [mark(0, 0), mark(1, 3, 0, 1)],
    2,
    { pagesPerMinute: 3, itemsPerMinute: 0, etaSeconds: { from: 60, to: 240 } },
  ],
  [
    'pages come, but no target is done',
    [mark(0, 0), mark(5, 2)],
    7,
    { pagesPerMinute: 0.4, itemsPerMinute: 0, etaSeconds: null },
  ],
  [
    'targets still come in',
    [mark(0, 0), mark(2, 20, 20, 20)],
    null,
    { pagesPerMinute: 10, itemsPerMinute: 10, etaSeconds: null },
  ],
  [
    'it stands still',
    [mark(0, 9, 9, 9), mark(3, 9, 9, 9)],
    5,
    { pagesPerMinute: 0, itemsPerMinute: 0, etaSeconds: null },
  ],
  [
    'a count that went back is no negative pace',
    [mark(0, 9, 9, 9), mark(3, 9, 9, 4)],
    5,
    { pagesPerMinute: 0, itemsPerMinute: 0, etaSeconds: null },
  ],
]

describe('the pace of a run', () => {
  for (const [what, marks, open, expected] of CASES) {
    test(what, () => assert.deepEqual(computePace(marks, open), expected))
  }
})

test('a continued run is as fast as it is now: the time it stood still does not count', () => {
  const resumedAt = 1e12 + 9 * MINUTE
  const run = {
    id: 'r',
    status: 'running',
    kind: 'crawl',
    startedAt: 1e12 - MINUTE,
    resumedAt,
    resumes: 1,
    plannedAt: 1e12,
    progress: null,
    counts: {
      pages: 284,
      itemsNew: 0,
      itemsUpdated: 0,
      targets: { planned: 60, in_progress: 0, done: 140, failed: 0, stuck: 0, parked: 0 },
    },
  } as unknown as Run
  const sample = (at: number, pages: number, done: number) => ({
    at,
    run: 'r',
    source: 'shop',
    pages,
    items: 0,
    done,
  })
  const before = [sample(resumedAt - 4 * MINUTE, 200, 100)]
  const samples = (...since: ReturnType<typeof sample>[]) => new Map([['r', [...before, ...since]]])
  const later = resumedAt + 21_000
  assert.equal(paceOf(samples(), run, later), null, 'not known yet')
  assert.deepEqual(paceOf(samples(sample(resumedAt + 1_000, 204, 100)), run, later), {
    pagesPerMinute: 240,
    itemsPerMinute: 0,
    etaSeconds: { from: 26, to: 35 },
  })
})
