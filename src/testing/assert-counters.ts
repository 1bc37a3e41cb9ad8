import assert from 'node:assert/strict'
import type { RunId } from '../core/model/id.ts'
import { TARGET_STATUSES } from '../core/model/target.ts'
import type { Store } from '../core/store/store.ts'
import { listTargets } from './fixtures.ts'

/** P14: the counters of a run equal a count of its rows. For a run that does not change meanwhile. */
export async function assertCountersConsistent(store: Store, id: RunId): Promise<void> {
  const run = await store.run(id)
  assert.ok(run)
  const targets = await listTargets(store, id)

  for (const status of TARGET_STATUSES) {
    const rows = targets.filter((target) => target.status === status).length
    assert.equal(run.counts.targets[status], rows, `${status}: books ${run.counts.targets[status]}`)
  }
  const pages = targets.reduce((sum, target) => sum + target.seq, 0)
  assert.equal(run.counts.pages, pages, 'pages')

  const groups = await store.countsByGroup(id)
  for (const { group, counts } of groups) {
    const rows = targets.filter((target) => target.group === group)
    const inBooks = Object.values(counts.targets).reduce((sum, n) => sum + n, 0)
    assert.equal(inBooks, rows.length, `group ${group}`)
    for (const status of TARGET_STATUSES) {
      const inStatus = rows.filter((target) => target.status === status).length
      assert.equal(counts.targets[status], inStatus, `group ${group}, ${status}`)
    }
  }
  const byPage = await store.countsByPage(id)
  const total = byPage.reduce((sum, at) => sum + at.targets, 0)
  assert.equal(total, targets.length, 'countsByPage')
}
