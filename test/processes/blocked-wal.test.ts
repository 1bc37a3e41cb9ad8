import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { Stage } from './harness.ts'

const CRAWL = `
  *targets() { yield { key: 'a' } },
  async page({ page }) {
    mark('page', 'a', page)
    if (page > 40) await opened('gate')
    return { items: [{ key: 'a' + page, data: 'x'.repeat(1_000_000) }], next: page > 40 ? null : 'next' }
  },
`

test('a -wal file that cannot be copied back is logged by a worker once, and doctor names the cause', async () => {
  await using stage = await Stage.set(sqliteEngine)
  using reader = new DatabaseSync(stage.database.url.slice('sqlite:'.length))
  reader.exec('BEGIN; SELECT count(*) FROM run')

  const worker = stage.unstuck('work', stage.crawl(CRAWL), '--drain')
  await worker.says('-wal only grows')
  await stage.marked('page', 41)
  const doctor = stage.unstuck('doctor')
  await doctor.end()
  stage.open('gate')

  assert.equal(await worker.end(), 0, worker.output)
  assert.equal(worker.output.match(/-wal only grows/g)?.length, 1)
  assert.match(doctor.output, /of its \d+ pages cannot be copied back/)
  assert.match(doctor.output, /keeps a read transaction open/)
})
