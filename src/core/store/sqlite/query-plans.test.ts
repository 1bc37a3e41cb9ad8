import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { callEveryStoreMethod } from '../../../testing/every-store-method.ts'
import { sqliteEngine as engine } from '../../../testing/sqlite-engine.ts'
import {
  CLAIM_ORDER,
  ENTRIES_NEWEST_FIRST,
  ENTRIES_OLDEST_FIRST,
  KEYS,
  KEYS_BELOW,
} from '../../../features/crawlee/store/sqlite.ts'
import { BY_KEY, RUN_TOTALS } from './lists.ts'
import { LIVE_RUNS } from './live-runs.ts'
import { COUNT_NAMED, REPLAN_NAMED } from './replan.ts'
import { LAST_FAILED } from './run-lists.ts'
import { FIRST_POSITION } from './runs.ts'

test('no statement of a run scans all targets, items, workers or counters', async (t) => {
  await using db = await engine.fresh()
  const statements = new Set<string>()
  const prepare = DatabaseSync.prototype.prepare
  t.mock.method(DatabaseSync.prototype, 'prepare', function (this: DatabaseSync, text: string) {
    statements.add(text)
    return prepare.call(this, text)
  })

  await callEveryStoreMethod(await db.open())
  t.mock.restoreAll()

  const ours = [...statements].filter((text) =>
    TABLES.some((table) => new RegExp(`\\b${table}\\b`).test(text)),
  )
  assert.ok(ours.length > 40, `only ${ours.length} statements were seen`)
  const planner = new DatabaseSync(db.url.slice('sqlite:'.length))
  for (const text of ours.filter((text) => !/^\s*(CREATE|PRAGMA|EXPLAIN)/i.test(text))) {
    for (const { detail } of planner.prepare(`EXPLAIN QUERY PLAN ${text}`).all()) {
      const scanned = /^SCAN (\w+)(?! VIRTUAL)/.exec(String(detail))?.[1]
      if (!scanned) continue
      const table = tableOf(scanned, text)
      const fine =
        !TABLES.includes(table) ||
        // By their order, from a given place and up to a limit.
        /LIMIT :limit/.test(text) ||
        // Only what is asked for is in these indexes.
        /USING (COVERING )?INDEX (worker_alive|target_dead_letter|target_acknowledged|alert_open|source_waiting)/.test(
          String(detail),
        )
      assert.ok(fine, `${detail} in ${text}`)
    }
  }
  planner.close()
})

test('the totals of runs are counted in an index', async () => {
  await using db = await engine.fresh()
  await db.open()
  const [plan] = await db.raw(`EXPLAIN QUERY PLAN ${RUN_TOTALS.text}`)
  assert.match(String(plan!['detail']), /USING COVERING INDEX run_by_status/)
})

test('the one target of a live run and the last run of a source are looked up by their ids', async () => {
  await using db = await engine.fresh()
  await db.open()
  const planOf = async (text: string): Promise<string> =>
    (await db.raw(`EXPLAIN QUERY PLAN ${text}`)).map(({ detail }) => detail).join('\n')

  assert.match(
    await planOf(LIVE_RUNS.text),
    /SEARCH t USING INDEX sqlite_autoindex_target_1 \(id=\?\)/,
  )
  assert.match(await planOf(LAST_FAILED.text), /SCAN f\nSEARCH r .*\bid=\?/)
})

test('the views for monitoring read claims, counters and the trail by their indexes', async () => {
  await using db = await engine.fresh()
  await db.open()
  const planOf = async (name: string): Promise<string> =>
    (await db.raw(`EXPLAIN QUERY PLAN SELECT * FROM unstuck_${name}`))
      .map(({ detail }) => detail)
      .join('\n')

  assert.match(await planOf('active_workers'), /INDEX worker_alive\nSEARCH t .*INDEX target_held/)
  assert.match(await planOf('progress_by_group'), /^SCAN [rc]\nSEARCH [rc] .*\?\)$/)
  assert.match(await planOf('targets_by_page'), /SEARCH r .*\nSEARCH t .*\(run_id=\?\)/)
  assert.match(
    await planOf('recent_recoveries'),
    /^SEARCH audit USING INDEX audit_by_time \(at>\?\)$/,
  )
})

test('named targets are requeued by their ids, however many others have failed', async () => {
  await using db = await engine.fresh()
  await db.open()
  for (const { text } of [COUNT_NAMED, REPLAN_NAMED]) {
    const [plan] = await db.raw(`EXPLAIN QUERY PLAN ${text}`)
    assert.match(
      String(plan!['detail']),
      /SEARCH target USING INDEX sqlite_autoindex_target_1 \(id=\?\)/,
    )
  }
})

test('entries, keys of records and targets by key are found by their indexes', async () => {
  await using db = await engine.fresh()
  await db.open()
  const planOf = async (text: string): Promise<string> =>
    (await db.raw(`EXPLAIN QUERY PLAN ${text}`)).map(({ detail }) => detail).join('\n')

  for (const { text } of [ENTRIES_OLDEST_FIRST, ENTRIES_NEWEST_FIRST]) {
    const plan = await planOf(text)
    assert.match(plan, /SEARCH crawlee_dataset_entry USING INTEGER PRIMARY KEY/)
    assert.match(plan, /USING COVERING INDEX crawlee_dataset_entry_in_order \(storage_id=\?\)/)
  }
  assert.match(await planOf(KEYS.text), /USING PRIMARY KEY \(storage_id=\? AND key>\?\)$/)
  assert.match(await planOf(KEYS_BELOW.text), /\(storage_id=\? AND key>\? AND key<\?\)$/)
  assert.match(await planOf(BY_KEY.text), /target_2 \(run_id=\? AND key=\?\)/)
  const inClaimOrder = await planOf(CLAIM_ORDER.text)
  assert.match(inClaimOrder, /target_ready \(run_id=\? AND ready_at>\?\)/)
  assert.match(inClaimOrder, /target_ready \(run_id=\? AND ready_at=\?\)/)
  assert.match(inClaimOrder, /target_crashed \(run_id=\?\)/)
  assert.match(inClaimOrder, /target_listed \(run_id=\? AND status=\?\)/)
  assert.match(await planOf(FIRST_POSITION.text), /target_ready \(run_id=\? AND ready_at<\?\)$/)
})

const TABLES = (
  'target item run_counters run worker audit source source_lock execution sample alert operation ' +
  'adopted_row adopted_intent crawlee_storage crawlee_dataset_entry crawlee_record'
).split(' ')

/** Names in a plan are those of the statement: an alias stands for its table. */
function tableOf(name: string, text: string): string {
  return (
    new RegExp(`(?:FROM|JOIN|UPDATE|INTO|,)\\s+(\\w+)\\s+(?:AS\\s+)?${name}\\b`).exec(text)?.[1] ??
    name
  )
}
