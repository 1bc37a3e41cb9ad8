import assert from 'node:assert/strict'
import { test } from 'node:test'
import { genericPlan } from '../../../testing/generic-plan.ts'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import {
  CLAIM_ORDER,
  ENTRIES_NEWEST_FIRST,
  ENTRIES_OLDEST_FIRST,
  KEYS,
  KEYS_BELOW,
} from '../../../features/crawlee/store/postgres.ts'
import type { Sql } from './database.ts'
import { BY_KEY } from './lists.ts'

test('entries, keys of records and targets by key are found by their indexes', async () => {
  await using db = await postgresEngine.fresh()
  await db.raw(/* sql */ `
    INSERT INTO unstuck.crawlee_storage (id, kind, name)
    SELECT gen_random_uuid(), 'dataset', n FROM generate_series(1, 10) n;
    INSERT INTO unstuck.crawlee_dataset_entry (storage_id, data)
    SELECT id, '{}' FROM unstuck.crawlee_storage, generate_series(1, 1000);
    INSERT INTO unstuck.crawlee_record (storage_id, key, value, content_type)
    SELECT id, n, '', '' FROM unstuck.crawlee_storage, generate_series(1, 1000) n;
    INSERT INTO unstuck.run (id, source, kind, status, policy)
    SELECT id, name, 'crawl', 'queued', '{}' FROM unstuck.crawlee_storage;
    INSERT INTO unstuck.target (id, run_id, key)
    SELECT gen_random_uuid(), id, n FROM unstuck.run, generate_series(1, 1000) n;
  `)
  await db.raw('VACUUM ANALYZE')
  const planOf = async (statement: Sql): Promise<string> => {
    const plan = (await genericPlan(db.url, statement.text)).join('\n')
    assert.doesNotMatch(plan, /Seq Scan/, statement.name)
    return plan
  }

  for (const statement of [ENTRIES_OLDEST_FIRST, ENTRIES_NEWEST_FIRST]) {
    const plan = await planOf(statement)
    const walk = /Limit\n\s+->  Index Only Scan (Backward )?using crawlee_dataset_entry_in_order/
    assert.match(plan, walk, 'to the offset, along the index alone')
    assert.match(plan, /Index Scan using crawlee_dataset_entry_pkey/)
  }
  assert.match(await planOf(KEYS), /record_pkey .*\n\s+Index Cond: .*key >= \$2/)
  assert.match(await planOf(KEYS_BELOW), /record_pkey .*\n\s+Index Cond: .*key >= \$2.*key < \$4/)
  const inClaimOrder = await planOf(CLAIM_ORDER)
  assert.match(inClaimOrder, /using target_ready.*\n\s+Index Cond: .*ready_at < 'infinity'/)
  assert.match(inClaimOrder, /using target_ready.*\n\s+Index Cond: .*ready_at IS NULL/)
  assert.match(await planOf(BY_KEY), /target_run_id_key_key.*\n\s+Index Cond: .*key = ANY/)
})
