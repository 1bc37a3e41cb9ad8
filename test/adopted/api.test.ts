import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withAdoptedTables } from '../../src/features/adopted/store-wrapper.ts'
import { makeSettings } from '../../src/app/config.ts'
import { ADOPTED_SECTION } from '../../src/features/adopted/config.ts'
import { openStore } from '../../src/core/store/open.ts'
import { makeAlertService } from '../../src/testing/alert-test-service.ts'
import { createApiClient, type ApiClient } from '../../src/testing/api-client.ts'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import type { Engine } from '../../src/testing/test-database.ts'
import { minutesAgo } from '../../src/testing/user-project.ts'
import {
  crawlRuns,
  insertRows,
  createUserTable,
  readUserRows,
  runUserSql,
} from '../../src/testing/user-tables.ts'
import { ALERT_STORE } from '../../src/features/alerts/store/store.ts'

type ApiTestContext = AsyncDisposable & {
  readonly api: ApiClient
  readonly store: Awaited<ReturnType<typeof openStore>>
  courses(): Promise<Record<string, any>[]>
  rename(from: string, to: string): Promise<unknown>
}

const IDS = ['a', 'b', 'c'].map((digit) => `00000000-0000-4000-8000-00000000000${digit}`)

/** The API over a database that holds Unstuck's own tables and one of the user: stale, young and dead. */
async function createApiTestContext(engine: Engine): Promise<ApiTestContext> {
  const database = await engine.fresh()
  const { url } = database
  await createUserTable(url, crawlRuns)
  const started = [minutesAgo(10), minutesAgo(1), minutesAgo(3_000)]
  await insertRows(
    url,
    crawlRuns,
    IDS.map((id, n) => ({
      id,
      course_id: `course-${n}`,
      status: 'running',
      started_at: started[n]!,
    })),
  )
  const settings = await makeSettings(
    {
      adopted: {
        courses: {
          ...crawlRuns.options[engine.name],
          policy: { staleAfter: '5m', onStale: 'fail' },
        },
      },
      policies: { 'course-2': { onStale: 'keep' } },
    },
    null,
  )
  const store = await withAdoptedTables(await openStore(url), settings.section(ADOPTED_SECTION), {
    address: url,
  })
  const api = await createApiClient({
    app: { open: async () => store, settings: async () => settings },
  })
  return {
    api,
    store,
    courses: () => readUserRows(url, crawlRuns),
    rename: (from, to) => runUserSql(url, `ALTER TABLE ${from} RENAME TO ${to}`),
    async [Symbol.asyncDispose]() {
      await api[Symbol.asyncDispose]()
      await store.close()
      await database[Symbol.asyncDispose]()
    },
  }
}

const keysOf = ({ items }: any): string[] => items.map(({ origin }: any) => origin.key)

for (const engine of [sqliteEngine, postgresEngine]) {
  test(`${engine.name}: the API shows, recovers, counts and reverts rows of an adopted table`, async () => {
    await using place = await createApiTestContext(engine)
    const { api } = place
    const before = await place.courses()

    const first = await api.get('/api/runs?limit=2')
    const rest = await api.get(`/api/runs?limit=2&after=${first.next}`)
    assert.deepEqual([...keysOf(first), ...keysOf(rest)], [IDS[1], IDS[0], IDS[2]])
    assert.equal(rest.next, null)
    const [stale] = first.items.filter(({ origin }: any) => origin.key === IDS[0])
    const { run, commands } = await api.get(`/api/runs/${stale.id}`)
    const row = { table: 'courses', key: IDS[0] }
    assert.deepEqual([run.origin, run.health], [row, 'orphaned'])
    assert.ok(!commands.some((command: string) => /retry|resume/.test(command)))

    const { plan, planned } = await api.get('/api/recovery')
    assert.deepEqual(await place.courses(), before, 'a preview changes nothing')
    const done = await api.post('/api/recovery', { plan })
    assert.deepEqual([planned, done.applied], [1, 1])
    assert.deepEqual(
      (await place.courses()).map(({ status }) => status),
      ['failed', 'running', 'running'],
    )
    const { body: metrics } = await api.ctx.call('GET', '/metrics', { as: 'admin' })
    assert.match(metrics, /unstuck_orphaned_runs_recovered_total\{reason="stale"\} 1\n/)
    assert.match(metrics, /unstuck_runs\{status="running"\} 2\n/)

    await api.post(`/api/runs/${stale.id}/retry`, { dryRun: true }, 409)
    await api.del(`/api/runs/${stale.id}`, { dryRun: true }, 409)
    for (const { method, path, body } of done.undo.calls) {
      assert.equal(method, 'POST')
      await api.post(path, body)
    }
    assert.deepEqual(await place.courses(), before, 'exactly what stood there')
    const { items } = await api.get(`/api/history?run=${stale.id}`)
    assert.deepEqual(
      items.map(({ action }: any) => action),
      ['revert', 'fail'],
    )
    await api.get('/api/runs?after=sources.bm90IEpTT04', 400)
  })
}

test('a dead row raises an alert, which is resolved when it was cleaned', async () => {
  await using place = await createApiTestContext(sqliteEngine)
  const { api, store } = place
  const alerts = makeAlertService(store, [], {
    policyOf: (await makeSettings(KEEP, null)).policyOf,
  })

  await alerts.check()
  const [alert, ...more] = await (await store.extend(ALERT_STORE)).listAlerts({ open: true })
  await place.rename('crawl_runs', 'elsewhere')
  await alerts.check()
  assert.equal(
    (await (await store.extend(ALERT_STORE)).listAlerts({ open: true })).length,
    1,
    'what cannot be seen is not over',
  )
  await place.rename('elsewhere', 'crawl_runs')
  while (store.unreadable.length > 0) await store.liveRuns()
  await api.post('/api/clean')
  await alerts.check()

  assert.deepEqual([alert?.rule, alert?.source, more], ['dead', 'course-2', []])
  assert.equal((await place.courses())[2]!['status'], 'Timeout - Auto-cleaned')
  assert.deepEqual(await (await store.extend(ALERT_STORE)).listAlerts({ open: true }), [])
})

/** Only the oldest is dead then; the others wait. */
const KEEP = {
  policies: Object.fromEntries(IDS.map((_, n) => [`course-${n}`, { onStale: 'keep' }])),
}

test('a list cursor over tables is ignored by a store without tables', async () => {
  await using api = await createApiClient({ engine: postgresEngine })
  const { error } = await api.get('/api/runs?after=sources.e30', 400)
  assert.match(error.message, /no place in this list/)
})
