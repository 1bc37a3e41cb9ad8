import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { ProcessTestContext } from './harness.ts'

const CRAWL = `
  *targets() { yield { key: 'a' } },
  async page({ page }) {
    mark('page', 'a', page)
    if (page > 40) await opened('gate')
    return { items: [{ key: 'a' + page, data: 'x'.repeat(1_000_000) }], next: page > 40 ? null : 'next' }
  },
`

test('a -wal file that cannot be copied back is logged by a worker once, and doctor names the cause', async () => {
  await using ctx = await ProcessTestContext.create(sqliteEngine)
  using reader = new DatabaseSync(ctx.database.url.slice('sqlite:'.length))
  reader.exec('BEGIN; SELECT count(*) FROM run')

  const worker = ctx.unstuck('work', ctx.crawl(CRAWL), '--drain')
  await worker.waitForOutput('-wal only grows')
  await ctx.waitForMarks('page', 41)
  const doctor = ctx.unstuck('doctor')
  await doctor.waitForExit()
  ctx.openGate('gate')

  assert.equal(await worker.waitForExit(), 0, worker.output)
  assert.equal(worker.output.match(/-wal only grows/g)?.length, 1)
  assert.match(doctor.output, /of its \d+ pages cannot be copied back/)
  assert.match(doctor.output, /keeps a read transaction open/)
})
