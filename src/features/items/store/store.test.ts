import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { RunId } from '../../../core/model/id.ts'
import type { Store } from '../../../core/store/store.ts'
import { claim, enqueueCrawl, registerWorker, savePage } from '../../../testing/fixtures.ts'
import { genericPlan } from '../../../testing/generic-plan.ts'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import { sqliteEngine } from '../../../testing/sqlite-engine.ts'
import { openExtended } from '../../../testing/test-database.ts'
import { ITEM_STORE, type ItemFilter, type ItemStore } from './store.ts'
import { ITEM_STATEMENTS as POSTGRES } from './postgres.ts'
import { ITEM_STATEMENTS as SQLITE } from './sqlite.ts'

const SOURCE = 'shop'

/** A run with one target per group, each of which saves a page of these items. */
async function crawl(
  store: Store,
  groups: Record<string, Record<string, unknown>>,
): Promise<RunId> {
  const targets = Object.keys(groups).map((group) => ({
    key: `target of ${group}`,
    ...(group !== '' && { group }),
  }))
  const run = await enqueueCrawl(store, targets, { source: SOURCE })
  const worker = await registerWorker(store, { source: SOURCE, leaseMs: 600_000 })
  for (const claimed of await claim(store, worker, targets.length, { source: SOURCE })) {
    const items = Object.entries(groups[claimed.group ?? '']!).map(([key, data]) => ({ key, data }))
    await savePage(store, claimed, { items, done: true })
  }
  await store.settle(run)
  return run
}

async function keysOf(store: ItemStore, filter: Partial<ItemFilter>): Promise<string[]> {
  const found: string[] = []
  for (let after: string | undefined; ;) {
    const asked = { source: SOURCE, limit: 2, after, ...filter }
    const { items, next } = await store.readItems('items', asked)
    found.push(...items.map(({ key }) => key))
    if (next === null) return found
    after = next
  }
}

for (const engine of [sqliteEngine, postgresEngine]) {
  describe(engine.name, () => {
    test('items are read in parts by run, group and time of change', async () => {
      await using db = await engine.fresh()
      const store = await openExtended(db, ITEM_STORE)
      const first = await crawl(store, { CA: { a: 1, b: 1, c: 1 }, TX: { d: 1 }, '': { e: 1 } })
      const { items } = await store.readItems('items', { source: SOURCE, limit: 9 })
      const since = Math.max(...items.map(({ changedAt }) => changedAt)) + 1
      while ((await store.now()) <= since);
      const second = await crawl(store, { TX: { a: 1, c: 2, f: 2 } })

      assert.deepEqual(await keysOf(store, {}), ['a', 'b', 'c', 'd', 'e', 'f'])
      assert.deepEqual(await keysOf(store, { run: first }), ['b', 'd', 'e'])
      assert.deepEqual(await keysOf(store, { run: second }), ['a', 'c', 'f'])
      assert.deepEqual(await keysOf(store, { group: 'CA' }), ['b'])
      assert.deepEqual(await keysOf(store, { group: 'TX', run: first }), ['d'])
      assert.deepEqual(await keysOf(store, { group: '' }), ['e'])
      assert.deepEqual(await keysOf(store, { since }), ['c', 'f'])
      assert.deepEqual(await keysOf(store, { since, group: 'CA' }), [])
      assert.deepEqual((await keysOf(store, { since: 0, limit: 1 })).sort(), [
        'a',
        'b',
        'c',
        'd',
        'e',
        'f',
      ])
      assert.deepEqual((await keysOf(store, { since: 0, limit: 4 })).slice(-2), ['c', 'f'])
      assert.deepEqual(await keysOf(store, { source: 'other' }), [])

      const latest = await store.latestItems('items', { source: SOURCE, limit: 2 })
      assert.deepEqual(latest.map(({ key }) => key).sort(), ['c', 'f'])
      const ofFirst = await store.latestItems('items', { source: SOURCE, run: first, limit: 9 })
      assert.deepEqual(ofFirst.map(({ key }) => key).sort(), ['b', 'd', 'e'])
      const before = { source: SOURCE, until: since - 1, limit: 9 }
      const until = await store.latestItems('items', before)
      assert.deepEqual(until.map(({ key }) => key).sort(), ['a', 'b', 'd', 'e'])
      await assert.rejects(keysOf(store, { since, after: 'x' }), { code: 'E_USAGE' })
    })

    test('what does not match is passed over without its data', async () => {
      await using db = await engine.fresh()
      const store = await openExtended(db, ITEM_STORE)
      await crawl(store, { CA: { a: 1, b: 1, c: 1 }, TX: { d: 1 } })

      const part = await store.readItems('items', { source: SOURCE, group: 'TX', limit: 2 })

      assert.deepEqual(part, { items: [], next: 'b' })
    })
  })
}

test('sqlite: items and entries are read by their indexes', async () => {
  await using db = await sqliteEngine.fresh()
  await db.open()
  const planOf = async ({ text }: { text: string }): Promise<string> =>
    (await db.raw(`EXPLAIN QUERY PLAN ${text}`)).map(({ detail }) => detail).join('\n')

  const { BY_KEY, BY_CHANGE, LATEST, ENTRIES, LATEST_ENTRIES } = SQLITE
  assert.match(await planOf(BY_KEY), /autoindex_item_1 \(source=\? AND key>\?\)$/)
  const byChange = /item_by_change \(source=\? AND changed_at>\?\)\n.*LAST TERM OF ORDER BY$/
  assert.match(await planOf(BY_CHANGE), byChange)
  assert.match(await planOf(LATEST), /item_by_change \(source=\? AND changed_at<\?\)/)
  const bySource = /entry_by_source \(source=\? AND seq>\?\)/
  assert.match(await planOf(ENTRIES), bySource)
  assert.match(await planOf(LATEST_ENTRIES), /entry_by_source \(source=\?\)/)
})

test('postgres: items and entries are read by their indexes', async () => {
  await using db = await postgresEngine.fresh()
  await db.raw(/* sql */ `
    INSERT INTO unstuck.item (source, key, key_version, data, changed_in, run_id, changed_at)
    SELECT 's' || n % 10, n, 0, '1', '', gen_random_uuid(), 'epoch'::timestamptz + n * interval '1 minute'
      FROM generate_series(1, 20000) n;
    INSERT INTO unstuck.crawlee_storage (id, kind, name) VALUES (gen_random_uuid(), 'dataset', 'd');
    INSERT INTO unstuck.crawlee_dataset_entry (storage_id, data, source)
    SELECT id, '{}', 's' || n % 10 FROM unstuck.crawlee_storage, generate_series(1, 20000) n;
  `)
  await db.raw('VACUUM ANALYZE')

  for (const [name, statement] of Object.entries(POSTGRES)) {
    const plan = (await genericPlan(db.url, statement.text)).join('\n')
    assert.doesNotMatch(plan, /Seq Scan on (item|crawlee_dataset_entry)/, name)
    const index = /ENTRIES/.test(name) ? /entry_by_source/ : /item_(pkey|by_change)/
    assert.match(plan, index, plan)
  }
})
