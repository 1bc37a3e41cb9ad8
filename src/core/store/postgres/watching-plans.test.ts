import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Client } from 'pg'
import { newId } from '../../model/id.ts'
import { ACKNOWLEDGE_STATEMENTS } from '../../../features/acknowledge/store/postgres.ts'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import type { TestDatabase } from '../../../testing/test-database.ts'
import type { Sql } from './database.ts'
import { RUNS_IN, WITH_DEAD_LETTERS } from './run-lists.ts'
import { THIN_SAMPLES } from './retention.ts'
import { TAKE } from './samples.ts'
import {
  RECOVERIES_PER_STEP,
  SAMPLES,
  SOME_SAMPLES,
} from '../../../features/metrics/store/postgres.ts'
import { SOURCES } from '../../../features/sources/store/postgres.ts'
import { DEAD_LETTERS, RUN_TOTALS } from './lists.ts'

type Plan = {
  'Node Type': string
  'Relation Name'?: string
  'Index Name'?: string
  Plans?: Plan[]
}

let db: TestDatabase
const NOW = Date.now()
const RUN = newId()

before(async () => {
  db = await postgresEngine.empty()
  await db.open()
  await db.raw(/* sql */ `
    INSERT INTO unstuck.run (id, source, kind, status, policy, finished_at)
    SELECT gen_random_uuid(), 'old-' || n % 50, 'single', CASE WHEN n % 4 = 0 THEN 'failed' ELSE 'succeeded' END,
           '{}', now() - n * interval '1 minute' FROM generate_series(1, 20000) n;
    INSERT INTO unstuck.source (source) SELECT 'old-' || n FROM generate_series(1, 2000) n;
    INSERT INTO unstuck.run_counters (run_id, group_name, writer, pages) SELECT id, '', '', 1 FROM unstuck.run;
    INSERT INTO unstuck.target (id, run_id, key, status, last_error)
    SELECT gen_random_uuid(), id, 'k', CASE WHEN n % 50 = 0 THEN 'failed' ELSE 'done' END, 'x'
      FROM (SELECT id, row_number() OVER () AS n FROM unstuck.run) AS runs;
    INSERT INTO unstuck.sample
    SELECT now() - n * interval '1 minute', gen_random_uuid(), 'old-' || n % 50, 1, 1, 1, n % 10 = 0
      FROM generate_series(1, 20000) n;
    INSERT INTO unstuck.audit (at, actor, action, source, run_id, because, evidence, before, after)
    SELECT now() - n * interval '1 minute', '', 'resume', '', gen_random_uuid(), '', '{}', '{}', '{}'
      FROM generate_series(1, 20000) n;
  `)
  await db.raw('VACUUM ANALYZE')
})
after(() => db[Symbol.asyncDispose]())

async function indexesOf(statement: Sql, values: unknown[]): Promise<(string | undefined)[]> {
  const client = new Client({ connectionString: db.url })
  await client.connect()
  const text = `EXPLAIN (FORMAT JSON) ${statement.text}`
  const { rows } = await client.query<{ 'QUERY PLAN': [{ Plan: Plan }] }>({ text, values })
  await client.end()
  const all = nodes(rows[0]!['QUERY PLAN'][0].Plan)
  const read = all.filter((node) => node['Node Type'] === 'Seq Scan')
  assert.deepEqual(read, [], `${statement.name} reads a whole table`)
  return all.map((node) => node['Index Name']).filter(Boolean)
}

function nodes(plan: Plan): Plan[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodes)]
}

test('runs in several statuses are found by a walk along the index for each', async () => {
  const page = [null, 51, null, null, null, null]
  const statuses = ['failed', 'abandoned']
  assert.ok((await indexesOf(RUNS_IN, [null, ...page, statuses])).includes('run_by_status'))
  assert.ok((await indexesOf(RUNS_IN, ['old-7', ...page, statuses])).includes('run_listed'))
})

test('runs are counted by status in an index that has nothing else', async () => {
  assert.deepEqual(await indexesOf(RUN_TOTALS, []), ['run_status'])
})

test('targets that need attention are found in their partial index', async () => {
  const partial = 'target_dead_letter'
  const statuses = ['failed', 'stuck', 'parked']
  const none = '00000000-0000-0000-0000-000000000000'
  for (const source of [null, 'old-7']) {
    for (const acknowledged of [null, false]) {
      const used = await indexesOf(DEAD_LETTERS, [none, 51, statuses, source, acknowledged])
      assert.ok(used.includes(partial), used.join())
    }
    await indexesOf(DEAD_LETTERS, [none, 51, statuses, source, true])
    for (const acknowledged of [true, false])
      await indexesOf(WITH_DEAD_LETTERS, [source, null, 51, acknowledged])
  }
})

test('targets are acknowledged, and those that are counted, by their indexes', async () => {
  const { ofRun, named, counts } = ACKNOWLEDGE_STATEMENTS
  for (const statement of ofRun) await indexesOf(statement, [RUN, null, null, false])
  for (const statement of named) {
    const used = await indexesOf(statement, [RUN, [newId()], null, false])
    assert.ok(
      !used.includes('target_listed'),
      `${statement.name} reads the failed targets of a run`,
    )
  }
  for (const runs of [null, [RUN]])
    assert.deepEqual(await indexesOf(counts, [runs]), ['target_acknowledged'])
})

test('samples are taken and found by their indexes, and recoveries by theirs', async () => {
  const hour = [NOW - 3_600_000, NOW]
  assert.deepEqual(await indexesOf(SAMPLES, [...hour, null, null]), ['sample_by_time'])
  assert.deepEqual(await indexesOf(SAMPLES, [0, NOW, RUN, null]), ['sample_by_run'])
  assert.deepEqual(await indexesOf(SAMPLES, [...hour, null, 'old-7']), ['sample_by_source'])
  await indexesOf(SOME_SAMPLES, [...hour, null, null, [NOW - 60_000]])
  const taken = await indexesOf(TAKE, [600_000, 1_800_000, true])
  assert.ok(taken.includes('run_by_end') && taken.includes('sample_by_run'), taken.join())
  const thinned = await indexesOf(THIN_SAMPLES, [NOW - 3_600_000, 2_000])
  assert.deepEqual(thinned.toSorted(), ['sample_by_run', 'sample_by_time'])
  const perMinute = [NOW - 3_600_000, 60_000, ['resume'], null, null]
  assert.deepEqual(await indexesOf(RECOVERIES_PER_STEP, perMinute), ['audit_by_time'])
})

test('the sources that are paused or wait are found without those that were ever worked on', async () => {
  assert.deepEqual(await indexesOf(SOURCES, []), ['source_waiting'])
})

test('the views for monitoring read recoveries by their time, and progress without targets', async () => {
  const select = (name: string): Sql => ({ name, text: `SELECT * FROM unstuck.${name}` }) as Sql
  assert.deepEqual(await indexesOf(select('recent_recoveries'), []), ['audit_by_time'])
  const lines = await db.raw('EXPLAIN SELECT * FROM unstuck.progress_by_group')
  const text = lines.map((line) => line['QUERY PLAN']).join('\n')
  assert.match(text, /on run_counters/)
  assert.doesNotMatch(text, /on target/)
})
