import assert from 'node:assert/strict'
import { test } from 'node:test'
import { barOf, formatDoneOfTotal, formatShareDone, type HowFar } from './format.ts'

const CASES: readonly [what: string, HowFar, done: string, share: string, bar: string][] = [
  [
    'a planned crawl',
    { done: 5, total: 10, planned: true, kind: 'crawl' },
    '5/10',
    '50 %',
    '████░░░░',
  ],
  [
    'a crawl whose targets still come in',
    { done: 5, total: 5, planned: false, kind: 'crawl' },
    '5/5+',
    'still planning',
    '░░░░░░░░',
  ],
  [
    'a run that reports what is done, and no total',
    { done: 3, total: null, planned: true, kind: 'single' },
    '3/?',
    'total unknown',
    '░░░░░░░░',
  ],
  [
    'a run that reports a total, and not what is done',
    { done: null, total: 3, planned: true, kind: 'single' },
    '?/3',
    'share unknown',
    '░░░░░░░░',
  ],
]

for (const [what, far, done, share, bar] of CASES) {
  test(`${what}: ${done}, ${share}`, () => {
    assert.equal(formatDoneOfTotal(far), done)
    assert.equal(formatShareDone(far), share)
    assert.equal(barOf(far), bar)
  })
}
