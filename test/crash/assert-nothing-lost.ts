import assert from 'node:assert/strict'
import { countOpenTargets, countTargets } from '../../src/core/model/run.ts'
import { compareWithSite } from '../../src/features/chaos/demo/report.ts'
import type { CrashTestReport } from './crash-runner.ts'

/** Compares what the database holds after the kills with the site. */
export function assertNothingLost({ seed, expected, results }: CrashTestReport): void {
  const replay = `npm run crash -- --seed ${seed}`
  const { run } = results
  const targets = expected.targets.length
  assert.equal(run.status, 'succeeded', replay)
  assert.equal(countOpenTargets(run.counts), 0, replay)
  assert.equal(countTargets(run.counts), targets, `P14 counters: ${replay}`)
  assert.equal(run.counts.targets.done, targets, replay)
  assert.deepEqual(
    compareWithSite(expected, results),
    { pagesLost: 0, pagesDoubled: 0, itemsLost: 0, itemsDoubled: 0 },
    `P4 P5: ${replay}`,
  )
  assert.equal(run.counts.pages, expected.pages, `P14 counters: ${replay}`)
  assert.equal(run.counts.itemsNew, expected.businesses.size, `P14 counters: ${replay}`)
}
