import assert from 'node:assert/strict'
import { test } from 'node:test'
import { adopt } from '../../src/features/adopted/adopt.ts'
import { makeSettings } from '../../src/app/config.ts'
import { openStore } from '../../src/core/store/open.ts'
import { alertService } from '../../src/testing/alert-context.ts'
import { apiCaller, type ApiCaller } from '../../src/testing/api-caller.ts'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import type { Engine } from '../../src/testing/test-database.ts'
import { minutesAgo } from '../../src/testing/users-project.ts'
import {
  crawlRuns,
  fill,
  makeUsersTable,
  usersRows,
  usersSql,
} from '../../src/testing/users-tables.ts'

type Site = AsyncDisposable & {
  readonly api: ApiCaller
  readonly store: Awaited<ReturnType<typeof openStore>>
  courses(): Promise<Record<string, any>[]>
  rename(from: string, to: string): Promise<unknown>
}

const IDS = ['a', 'b', 'c'].map((digit) => `00000000-0000-4000-8000-00000000000${digit}`)

/** The API over a database that holds Unstuck's own tables and one of the user: stale, young and dead. */
async function site(engine: Engine): Promise<Site> {
  const database = await engine.fresh()
  const { url } = database
  await makeUsersTable(url, crawlRuns)
  const started = [minutesAgo(10), minutesAgo(1), minutesAgo(3_000)]
  await fill(
    url,
    crawlRuns,
    IDS.map((id, n) => ({
      id,
      course_id: `course-${n}`,
      status: 'running',
      started_at: started[n]!,
    })),
  )
  const settings = makeSettings(
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
  const store = adopt(await openStore(url), settings.adopted, { address: url })
  const api = await apiCaller({ app: { open: async () => store, settings: async () => settings } })
  return {
    api,
    store,
    courses: () => usersRows(url, crawlRuns),
    rename: (from, to) => usersSql(url, `ALTER TABLE ${from} RENAME TO ${to}`),
    async [Symbol.asyncDispose]() {
      await api[Symbol.asyncDispose]()
      await store.close()
      await database[Symbol.asyncDispose]()
    },
  }
}

const keysOf = ({ items }: any): string[] => items.map(({ adopted }: any) => adopted.key)

for (const engine of [sqliteEngine, postgresEngine]) {
  test(`${engine.name}: the API shows rows of a table of the user, recovers, counts and takes back`, async () => {
    await using place = await site(engine)
    const { api } = place
    const before = await place.courses()

    const first = await api.get('/api/runs?limit=2')
    const rest = await api.get(`/api/runs?limit=2&after=${first.next}`)
    assert.deepEqual([...keysOf(first), ...keysOf(rest)], [IDS[1], IDS[0], IDS[2]])
    assert.equal(rest.next, null)
    const [stale] = first.items.filter(({ adopted }: any) => adopted.key === IDS[0])
    const { run, commands } = await api.get(`/api/runs/${stale.id}`)
    const row = { table: 'courses', key: IDS[0], can: ['cancel'] }
    assert.deepEqual([run.adopted, run.health], [row, 'dead'])
    assert.ok(!commands.some((command: string) => /retry|resume/.test(command)))

    const { plan, deeds } = await api.get('/api/recovery')
    assert.deepEqual(await place.courses(), before, 'a preview changes nothing')
    const done = await api.post('/api/recovery', { plan })
    assert.deepEqual([deeds, done.applied], [1, 1])
    assert.deepEqual(
      (await place.courses()).map(({ status }) => status),
      ['failed', 'running', 'running'],
    )
    const { body: metrics } = await api.stage.call('GET', '/metrics', { as: 'admin' })
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
    await api.get('/api/runs?after=adopted.bm90IEpTT04', 400)
  })
}

test('people are told of a dead row, and that it is over when it was cleaned', async () => {
  await using place = await site(sqliteEngine)
  const { api, store } = place
  const alerts = alertService(store, [], { policyOf: makeSettings(KEEP, null).policyOf })

  await alerts.look()
  const [alert, ...more] = await store.openAlerts()
  await place.rename('crawl_runs', 'elsewhere')
  await alerts.look()
  assert.equal((await store.openAlerts()).length, 1, 'what cannot be seen is not over')
  await place.rename('elsewhere', 'crawl_runs')
  while (store.away.length > 0) await store.liveRuns()
  await api.post('/api/clean')
  await alerts.look()

  assert.deepEqual([alert?.rule, alert?.source, more], ['dead', 'course-2', []])
  assert.equal((await place.courses())[2]!['status'], 'Timeout - Auto-cleaned')
  assert.deepEqual(await store.openAlerts(), [])
})

/** Only the oldest is dead then; the others wait. */
const KEEP = {
  policies: Object.fromEntries(IDS.map((_, n) => [`course-${n}`, { onStale: 'keep' }])),
}

test('a place in a list of tables means nothing to a store that has none', async () => {
  await using api = await apiCaller({ engine: postgresEngine })
  const { error } = await api.get('/api/runs?after=adopted.e30', 400)
  assert.match(error.message, /not a place in a list/)
})
