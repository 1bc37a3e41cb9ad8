import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../../../core/model/id.ts'
import type { Run } from '../../../core/model/run.ts'
import { TextWriter } from '../../../lib/terminal/text-writer.ts'
import { makeDirectory } from './site.ts'
import { makeReport, printReport, type InjectedFaults, type SavedResults } from './report.ts'

const truth = makeDirectory(1, 3)
const targets = { planned: 0, in_progress: 0, done: 3, failed: 0, stuck: 0, parked: 0 }
const counts = { targets, pages: truth.pages, refused: 2 }
const found: SavedResults = {
  run: { status: 'succeeded', counts } as Run,
  ledger: truth.targets.flatMap(({ key, pages }) =>
    pages.map((_, index) => ({ target: key, page: index + 1 })),
  ),
  items: Array.from(truth.businesses, ([key, data]) => ({ key, data })),
}
const RECOVERY = { claimableMs: 999, reclaimedMs: 999, by: newId(), because: null }
const events: InjectedFaults = {
  killsAsked: 1,
  kills: [{ at: 0, worker: newId(), recoveries: [RECOVERY, RECOVERY] }],
  deploys: [{ stoppedMs: 11_000, backMs: 999 }],
  zombies: [{ silentMs: 14_000, refused: 1, isLateWriteSaved: false }],
  skipped: [],
}
const stats = { served: 999, refetched: 99, errors500: 999, errors429: 999 }

function print(found: SavedResults): string {
  const paper = new TextWriter(80, false)
  printReport(paper, makeReport(truth, found, events, stats), {
    expected: truth,
    faults: events,
    tookMs: 99_000,
    seed: 999_999,
    machine: '16 processors under load 12.5',
    next: [
      ['export UNSTUCK_DB=sqlite:.unstuck/demo/0a1b2c3d/unstuck.db', ''],
      ['npx unstuck show 0a1b2c3d', 'the run, and what recovery did and why'],
    ],
    leftBehind: 'All of it is in .unstuck/demo/0a1b2c3d.',
  })
  return paper.toString()
}

test('the report fits into 80 columns without a word cut off, and gives the result', () => {
  const text = print(found)
  assert.doesNotMatch(text, /…/)
  assert.match(text, /^1 worker killed with kill -9: no page lost, nothing doubled\.$/m)
})

test('the report lists what is wrong', () => {
  const text = print({ ...found, ledger: found.ledger.slice(1) })
  assert.match(text, /^Something is wrong:\n- Missing or wrong: 1 page, 0 items\.$/m)
  assert.doesNotMatch(text, /nothing doubled\./)
})
