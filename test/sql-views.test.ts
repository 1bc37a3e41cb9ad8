import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import pg from 'pg'
import { open } from '../src/index.ts'
import { newId } from '../src/core/model/id.ts'
import { LIVE_STATUSES } from '../src/core/model/run.ts'
import type { Store } from '../src/core/store/store.ts'
import { RECOVERY_ACTIONS } from '../src/features/metrics/store/store.ts'
import { postgresEngine } from '../src/testing/postgres-engine.ts'
import { fillShowcase } from '../src/testing/showcase.ts'
import { sqliteEngine } from '../src/testing/sqlite-engine.ts'
import type { Engine, TestDatabase } from '../src/testing/test-database.ts'

/** docs/reference/sql-views.md: each view has what the library reports, on both engines. */

const DOCS = readFileSync(new URL('../docs/reference/sql-views.md', import.meta.url), 'utf8')
const VIEWS = [
  'active_workers',
  'worker_heartbeats',
  'progress_by_group',
  'targets_by_page',
  'recent_recoveries',
]

type Row = Record<string, unknown>
type Views = (name: string, order?: string) => Promise<Row[]>

function viewsOf(db: TestDatabase, engine: Engine): Views {
  const prefix = engine.name === 'sqlite' ? 'unstuck_' : 'unstuck.'
  return (name, order = '1') => db.raw(`SELECT * FROM ${prefix}${name} ORDER BY ${order}`)
}

const millis = (time: unknown): number =>
  Date.parse(time instanceof Date ? iso(time) : String(time))
const iso = (time: unknown): string => new Date(time as string).toISOString()
const numbers = (row: Row, names: readonly string[]): number[] =>
  names.map((name) => Number(row[name]))

for (const engine of [sqliteEngine, postgresEngine]) {
  describe(engine.name, () => {
    test('each view has the rows that the library reports for the same database, in the documented columns', async () => {
      await using db = await engine.fresh()
      const store = await db.open()
      await using showcase = await fillShowcase(store, { url: db.url })
      await using unstuck = await open({ db: db.url })
      const view = viewsOf(db, engine)

      await compareWorkers(store, await unstuck.workers(), view)
      await compareCounts(store, view)
      await assertDocumented(view)

      // An operator's entry, with the name of an action of recovery.
      const planned = { statuses: ['planned'], limit: 1 } as const
      await unstuck.park((await store.targets(showcase.runs.healthy, planned)).items[0]!.id)
      const history: { id: number; at: string; action: string; because: string; facts: unknown }[] =
        []
      for await (const entry of unstuck.history({ since: '7d' })) history.push(entry)
      const recoveries = history.filter(
        ({ action, facts }) => facts !== null && (RECOVERY_ACTIONS as string[]).includes(action),
      )
      const rows = await view('recent_recoveries', 'id DESC')
      assert.ok(recoveries.length > 0 && recoveries.length < history.length)
      assert.deepEqual(
        rows.map((row) => [
          Number(row['id']),
          millis(row['recovered_at']),
          row['action'],
          row['because'],
        ]),
        recoveries.map(({ id, at, action, because }) => [id, millis(at), action, because]),
      )
    })

    test('the documented queries can be run', async () => {
      await using db = await engine.fresh()
      const examples = [...DOCS.matchAll(/```sql\n(SELECT.+?)```/gs)].map(([, text]) => text!)
      assert.ok(examples.length >= VIEWS.length)
      for (const text of examples)
        await db.raw(engine.name === 'sqlite' ? text.replaceAll('unstuck.', 'unstuck_') : text)
    })

    test('a database of version 101 gets the views when it is opened, and programs of then continue', async () => {
      await using db = await engine.fresh()
      const prefix = engine.name === 'sqlite' ? 'unstuck_' : 'unstuck.'
      for (const name of VIEWS) await db.raw(`DROP VIEW ${prefix}${name}`)
      if (engine.name === 'postgres') await db.raw('DROP FUNCTION unstuck.checkpoint(json)')
      await db.raw(`DELETE FROM ${db.table('migration')} WHERE number > 101`)

      await db.open()

      for (const name of VIEWS) assert.deepEqual(await db.raw(`SELECT * FROM ${prefix}${name}`), [])
      const versions = await db.raw(
        `SELECT number, min_program_version FROM ${db.table('migration')} ORDER BY number`,
      )
      assert.deepEqual(
        versions.slice(0, 2).map((row) => numbers(row, ['number', 'min_program_version'])),
        [
          [101, 101],
          [102, 101],
        ],
      )
    })
  })
}

/** No view has data, a cursor, an input or a secret, and none judges. */
async function assertDocumented(view: Views): Promise<void> {
  for (const name of VIEWS) {
    const section = DOCS.split(`\n## ${name}\n`)[1]!.split(/^## /m)[0]!
    const documented = [...section.matchAll(/^\| (`.+?`) \|/gm)].flatMap(([, cell]) =>
      [...cell!.matchAll(/`(\w+)`/g)].map(([, column]) => column!),
    )
    const [row] = await view(name)
    assert.deepEqual(Object.keys(row!).sort(), documented.sort(), name)
    for (const column of documented)
      assert.doesNotMatch(column, /data|cursor|input|policy|token|presence|dead|stall|health/)
  }
}

async function compareWorkers(
  store: Store,
  { items }: { items: readonly { id: string; source: string; targets: number }[] },
  view: Views,
): Promise<void> {
  const before = Date.now()
  const active = await view('active_workers')
  const after = Date.now()
  const assertAge = (seconds: unknown, since: number): void => {
    const then = [before, after].map((now, n) => now - Number(seconds) * 1_000 + (n - 0.5) * 400)
    assert.ok(then[0]! <= since && since <= then[1]!, `${String(seconds)} s since ${since}`)
  }
  assert.deepEqual(
    active.map((row) => [row['worker_id'], row['source'], Number(row['targets'])]),
    items.map(({ id, source, targets }) => [id, source, targets]).sort(),
  )
  const holdings = await store.holdings()
  for (const row of active) {
    const worker = (await store.worker(row['worker_id'] as string))!
    assert.deepEqual(
      [row['host'], row['pid'], row['version'], Number(row['lease_seconds']) * 1_000],
      [worker.process.host, worker.process.pid, worker.version, worker.leaseMs],
    )
    assertAge(row['heartbeat_age_seconds'], millis(row['last_heartbeat_at']))
    const held = holdings.filter((one) => one.worker === worker.id)
    const oldest = Math.min(...held.map(({ lastActivityAt }) => lastActivityAt))
    const seconds = row['seconds_since_oldest_activity']
    if (held.length === 0) assert.deepEqual([seconds, row['last_activity_at']], [null, null])
    else assertAge(seconds, oldest)
  }
  const heartbeats = await view('worker_heartbeats')
  assert.ok(heartbeats.some((row) => row['ended_at'] !== null))
  for (const row of heartbeats) {
    const worker = (await store.worker(row['worker_id'] as string))!
    assert.equal(Number(row['heartbeat_interval_seconds']) * 1_000, worker.heartbeatMs)
    assert.equal(row['ended_at'] === null, worker.endedAt === null)
    assert.ok(Number(row['heartbeats']) <= worker.heartbeats)
  }
}

const STATUSES = ['planned', 'in_progress', 'done', 'failed', 'stuck', 'parked'] as const

async function compareCounts(store: Store, view: Views): Promise<void> {
  const progress = Map.groupBy(await view('progress_by_group'), (row) => row['run_id'] as string)
  const pages = Map.groupBy(await view('targets_by_page', 'run_id, page'), (row) => row['run_id'])
  const { items: runs } = await store.runs({ limit: 1_000 })
  let [groups, live] = [0, 0]
  for (const { id, source, status, lastActivityAt } of runs) {
    const known = progress.get(id) ?? []
    const newest = known
      .map((row) => millis(row['last_activity_at']))
      .sort()
      .at(-1)
    if (newest !== undefined) assert.equal(newest, lastActivityAt)
    const rows = known.map((row) => [
      [row['source'], row['run_status'], row['group_name']],
      numbers(row, [...STATUSES, 'targets', 'pages', 'items_new', 'items_updated']),
      numbers(row, ['items_unchanged', 'skipped', 'errors']),
    ])
    const counted = (await store.countsByGroup(id)).map(({ group, counts }) => {
      const { targets, pages, itemsNew, itemsUpdated, itemsUnchanged, skipped, errors } = counts
      const each = STATUSES.map((name) => targets[name])
      const total = each.reduce((sum, n) => sum + n, 0)
      return [
        [source, status, group],
        [...each, total, pages, itemsNew, itemsUpdated],
        [itemsUnchanged, skipped, errors],
      ]
    })
    const byText = (a: unknown, b: unknown): number =>
      JSON.stringify(a) < JSON.stringify(b) ? -1 : 1
    assert.deepEqual(rows.sort(byText), counted.sort(byText))
    groups += rows.length
    const isLive = (LIVE_STATUSES as readonly string[]).includes(status)
    assert.deepEqual(
      (pages.get(id) ?? []).map((row) => ({
        page: Number(row['page']),
        targets: Number(row['targets']),
      })),
      isLive ? await store.countsByPage(id) : [],
    )
    live += isLive ? 1 : 0
  }
  assert.ok(groups > runs.length && live > 3 && live < runs.length)
}

test('a login that may read the views alone reads what is behind them, and no table', async () => {
  await using db = await postgresEngine.fresh()
  await db.open()
  const role = `monitor_${newId().slice(-8)}`
  await db.raw(`CREATE ROLE ${role} LOGIN PASSWORD 'x'`)
  try {
    const [grants] = [...DOCS.matchAll(/```sql\n(GRANT.+?)```/gs)].map(([, text]) => text!)
    await db.raw(grants!.replaceAll('monitoring', role))
    const url = new URL(db.url)
    Object.assign(url, { username: role, password: 'x' })
    const client = new pg.Client({ connectionString: url.href })
    await client.connect()
    try {
      for (const name of VIEWS) await client.query(`SELECT * FROM unstuck.${name}`)
      for (const name of ['worker', 'target', 'audit', 'item'])
        await assert.rejects(client.query(`SELECT * FROM unstuck.${name}`), { code: '42501' })
      await assert.rejects(client.query('DELETE FROM unstuck.worker_heartbeats'), { code: '42501' })
    } finally {
      await client.end()
    }
  } finally {
    await db.raw(`DROP OWNED BY ${role}; DROP ROLE ${role}`)
  }
})
