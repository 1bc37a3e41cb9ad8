import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import {
  claimOne,
  registerWorker,
  savePage,
  makeItems,
  enqueueCrawl,
} from '../../../testing/fixtures.ts'
import { sqliteEngine as engine } from '../../../testing/sqlite-engine.ts'
import { INSPECTION_STORE } from '../../../features/inspection/store/store.ts'

/** More than five thousand pages of the file. */
const BIG = { items: makeItems(0, 30, 'x'.repeat(1_000_000)) }

test('a -wal file that another program keeps from being copied back is reported, and no longer when it is', async () => {
  await using db = await engine.fresh()
  const store = await db.open()
  const worker = await registerWorker(store)
  await enqueueCrawl(store, 1)
  let claimed = await claimOne(store, worker)
  const reader = new DatabaseSync(store.location)
  reader.exec('BEGIN; SELECT count(*) FROM run')

  claimed = { ...claimed, ...(await savePage(store, claimed, BIG)) }
  const { blockedWal } = await (await store.extend(INSPECTION_STORE)).inspect()
  const { warning } = await store.heartbeat({ worker, claimIds: [claimed.claimId], loopLagMs: 0 })

  assert.ok(blockedWal && blockedWal.left >= 5_000 && blockedWal.left <= blockedWal.pages)
  assert.ok(blockedWal.bytes > 20_000_000)
  assert.match(warning ?? '', /-wal only grows: another program keeps a read transaction open/)
  reader.exec('COMMIT')
  reader.close()
  assert.equal(
    (await (await store.extend(INSPECTION_STORE)).inspect()).blockedWal,
    null,
    'as big, but copied back',
  )
})
