import assert from 'node:assert/strict'
import { countOpenTargets, countTargets } from '../../src/core/model/run.ts'
import type { CrashTestReport } from './crash-runner.ts'

/** Holds what the database says after a storm against the site's own truth. */
export function assertNothingLost(report: CrashTestReport): void {
  const { run, site, ledger, items } = report
  const replay = `npm run crash -- --seed ${report.seed}`
  assert.equal(run.status, 'succeeded', replay)
  assert.equal(countOpenTargets(run.counts), 0, replay)
  assert.equal(countTargets(run.counts), site.targets, `P14 books: ${replay}`)
  assert.equal(run.counts.targets.done, site.targets, replay)
  assert.equal(run.counts.pages, site.pages, `P14 books: ${replay}`)
  const pages = new Set(ledger.map(({ target, page }) => `${target}/${page}`))
  assert.equal(pages.size, site.pages, `pages lost: ${replay}`)
  assert.equal(ledger.length, site.pages, `pages done twice: ${replay}`)
  assert.deepEqual(items, site.items, `P5 items: ${replay}`)
  assert.equal(run.counts.itemsNew, site.items.size, `P14 books: ${replay}`)
}
