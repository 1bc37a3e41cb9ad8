import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../../../core/model/id.ts'
import type { Run } from '../../../core/model/run.ts'
import { makeDirectory } from './site.ts'
import { makeReport, type InjectedFaults, type SavedResults, type Report } from './report.ts'
import type { Kill } from './scenario.ts'

const truth = makeDirectory(1, 4)
const stats = { served: 40, refetched: 3, errors500: 1, errors429: 1 }
const ZOMBIE = { silentMs: 5_000, refused: 1, isLateWriteSaved: false }
const events: InjectedFaults = {
  killsAsked: 2,
  kills: [300, 500].map((ms) => makeKill(ms - 100, ms)),
  deploys: [],
  zombies: [ZOMBIE],
  skipped: [],
}

function makeKill(claimableMs: number, reclaimedMs: number): Kill {
  return {
    at: 0,
    worker: newId(),
    recoveries: [{ claimableMs, reclaimedMs, by: newId(), because: null }],
  }
}

/** A flawless database. */
function flawlessResult(): SavedResults & { run: Run; ledger: { target: string; page: number }[] } {
  const ledger = truth.targets.flatMap(({ key, pages }) =>
    pages.map((_, index) => ({ target: key, page: index + 1 })),
  )
  const items = Array.from(truth.businesses, ([key, data]) => ({ key, data }))
  const targets = { planned: 0, in_progress: 0, done: 4, failed: 0, stuck: 0, parked: 0 }
  const counts = { targets, pages: ledger.length, refused: 2 }
  return { ledger, items, run: { status: 'succeeded', counts } as Run }
}

function report(change: Partial<SavedResults> = {}, done: Partial<InjectedFaults> = {}): Report {
  return makeReport(truth, { ...flawlessResult(), ...change }, { ...events, ...done }, stats)
}

test('a run that came through is ok, with its figures', () => {
  const { ok, problems, ...figures } = report()
  assert.deepEqual(problems, [])
  assert.ok(ok)
  assert.equal(figures.pages, truth.pages)
  assert.equal(figures.items, truth.businesses.size)
  assert.equal(figures.kills, 2)
  assert.equal(figures.lost + figures.doubled, 0)
  assert.equal(figures.refetched, 3)
  assert.equal(figures.lateWritesRefused, 2)
  assert.equal(figures.slowestRecoveryMs, 500)
  assert.equal(figures.medianRecoveryMs, 400)
  assert.equal(figures.slowestClaimableMs, 400)
})

test('a page that was never committed is lost', () => {
  const { ok, pagesLost, lost } = report({ ledger: flawlessResult().ledger.slice(1) })
  assert.deepEqual({ ok, pagesLost, lost }, { ok: false, pagesLost: 1, lost: 1 })
})

test('a page with two rows in the ledger is doubled', () => {
  const { ledger } = flawlessResult()
  const { ok, pagesDoubled, doubled } = report({ ledger: [...ledger, ledger[3]!] })
  assert.deepEqual({ ok, pagesDoubled, doubled }, { ok: false, pagesDoubled: 1, doubled: 1 })
})

test('one page lost and another doubled do not cancel out', () => {
  const { ledger } = flawlessResult()
  const { ok, lost, doubled } = report({ ledger: [...ledger.slice(1), ledger.at(-1)!] })
  assert.deepEqual({ ok, lost, doubled }, { ok: false, lost: 1, doubled: 1 })
})

test('a missing item and one with other data are lost', () => {
  const [first, , ...rest] = flawlessResult().items
  const changed = { ...first!, data: { name: 'another' } }
  const { ok, itemsLost } = report({ items: [changed, ...rest] })
  assert.deepEqual({ ok, itemsLost }, { ok: false, itemsLost: 2 })
})

test('an item under a second spelling of its address is doubled', () => {
  const { items } = flawlessResult()
  const again = { ...items[0]!, key: items[0]!.key.replace('?', '/?') }
  const { ok, itemsDoubled, lost } = report({ items: [...items, again] })
  assert.deepEqual({ ok, itemsDoubled, lost }, { ok: false, itemsDoubled: 1, lost: 0 })
})

test('the time a target waits for a starting worker is reported, and is not a failure', () => {
  const busy = makeKill(999, 3_000)
  const { ok, slowestRecoveryMs, slowestClaimableMs } = report({}, { kills: [busy, busy] })
  assert.deepEqual([ok, slowestRecoveryMs, slowestClaimableMs], [true, 3_000, 999])
})

test('a second or more until a target can be claimed, too few kills, or a zombie that got through are not ok', () => {
  const slow = makeKill(1_000, 1_000)
  assert.equal(report({}, { kills: [slow, slow] }).ok, false)
  assert.equal(report({}, { killsAsked: 3 }).ok, false)
  const { run } = flawlessResult()
  assert.equal(report({ run: { ...run, counts: { ...run.counts, refused: 0 } } }).ok, false)
  assert.equal(report({ run: { ...run, status: 'failed' } }).ok, false)
  for (const change of [{ refused: 0 }, { isLateWriteSaved: true }])
    assert.equal(report({}, { zombies: [{ ...ZOMBIE, ...change }] }).ok, false)
})

test('without kills there is no recovery to measure, and without a zombie no write to refuse', () => {
  const { run } = flawlessResult()
  const calm = { ...run, counts: { ...run.counts, refused: 0 } }
  const { ok, slowestRecoveryMs } = report({ run: calm }, { killsAsked: 0, kills: [], zombies: [] })
  assert.deepEqual({ ok, slowestRecoveryMs }, { ok: true, slowestRecoveryMs: null })
})
