import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AdoptedOptions } from '../../src/features/adopted/mapping.ts'
import { newId, isId, shortId } from '../../src/core/model/id.ts'
import { DEFAULT_POLICY } from '../../src/core/model/policy.ts'
import type { RunFilter } from '../../src/core/store/store.ts'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { crawlRuns, tenderRuns, ypTargets, type UserTable } from '../../src/testing/user-tables.ts'
import { minutesAgo, createAdoptedTestContext } from './test-context.ts'

test('own runs and those of the tables are listed page by page, newest first, with no gap and no double', async () => {
  await using ctx = await createAdoptedTestContext(sqliteEngine, {
    courses: {
      table: crawlRuns,
      rows: Array.from({ length: 40 }, (_, n) => ({
        id: `c-${n}`,
        course_id: `course ${n % 4}`,
        // In a second table's time, and many at the same moment.
        started_at: minutesAgo(10 + Math.floor(n / 5)),
        status: n % 3 === 0 ? 'failed' : n % 3 === 1 ? 'unheard of' : 'running',
      })),
    },
    tenders: {
      table: tenderRuns,
      rows: Array.from({ length: 29 }, (_, n) => ({
        portal_name: `portal ${n}`,
        status: 'completed',
        started_at: n % 7 === 0 ? null : minutesAgo(8 + n),
      })),
    },
    yp: { table: ypTargets, rows: [{ id: 1, slug: 'x', claimed_at: minutesAgo(15) }] },
  })
  const { store } = ctx
  for (let n = 0; n < 30; n++) {
    const run = { id: newId(), source: `own ${n}`, kind: 'crawl' as const, policy: DEFAULT_POLICY }
    await store.enqueue(run)
  }
  const all = async (filter: Omit<RunFilter, 'limit'>, limit: number) => {
    const found = []
    for (let after: string | undefined; ;) {
      const { items, next } = await store.runs({ ...filter, limit, after })
      assert.ok(items.length === limit || next === null)
      found.push(...items)
      if (next === null) return found
      after = next
    }
  }

  const whole = await all({}, 200)
  assert.equal(whole.length, 100)
  assert.ok(whole.every(({ id }) => isId(id)))
  for (const limit of [1, 7, 50, 100]) {
    const ids = (await all({}, limit)).map(({ id }) => id)
    assert.deepEqual([ids.length, new Set(ids).size], [100, 100])
    if (limit < 50)
      assert.deepEqual(
        ids,
        whole.map(({ id }) => id),
      )
  }
  const times = whole
    .filter(({ traits }) => traits.origin?.table === 'courses')
    .map((run) => run.createdAt)
  assert.deepEqual(
    times,
    times.toSorted((a, b) => b - a),
  )
  const firstOfTheirs = whole.findIndex(({ traits }) => traits.origin !== null)
  assert.equal(firstOfTheirs, 30, 'those of today come before those of some minutes ago')

  const count = async (filter: Omit<RunFilter, 'limit'>) => (await all(filter, 9)).length
  assert.equal(await count({ statuses: ['failed'] }), 14)
  assert.equal(await count({ statuses: ['cancelled'] }), 13, 'by a status value that is not mapped')
  assert.equal(await count({ statuses: ['queued', 'running'] }), 30 + 13 + 1)
  assert.equal(await count({ source: 'course 1' }), 10)
  assert.equal(await count({ source: 'own 3' }), 1)
  assert.equal(await count({ source: 'yp' }), 1)
  assert.equal(await count({ search: 'OWN 2' }), 11)
  assert.equal(await count({ search: 'portal' }), 29)
  assert.equal(await count({ createdSince: minutesAgo(12).getTime() }), 30 + 10 + 3)
  const totals = await store.runTotals()
  assert.deepEqual(totals, {
    ...totals,
    queued: 31,
    failed: 14,
    succeeded: 29,
    cancelled: 13,
    running: 13,
  })
  await assert.rejects(store.runs({ limit: 1, after: 'adopted.nonsense' }), /no place in this list/)

  const { items: failed } = await store.runs({ latestFailed: true, limit: 500 })
  assert.deepEqual(
    failed.map(({ source, status }) => [source, status]),
    [['course 3', 'failed']],
    'of the others the newest run did not',
  )
  assert.equal((await store.liveRun('course 1'))?.traits.origin?.table, 'courses')
  assert.equal((await store.liveRun('own 1'))?.traits.origin, null)
})

/** Rows need not say what they crawl. */
const sourceless: UserTable = {
  sql: { sqlite: 'jobs', postgres: 'jobs' },
  ddl: {
    sqlite: 'CREATE TABLE jobs (id TEXT PRIMARY KEY, site TEXT, state TEXT, began TEXT)',
    postgres: 'CREATE TABLE jobs (id text PRIMARY KEY, site text, state text, began timestamptz)',
  },
  options: { sqlite: jobsOptions(), postgres: jobsOptions() },
  sqliteTime: (at) => at.toISOString(),
}

function jobsOptions(): AdoptedOptions {
  return {
    table: 'jobs',
    columns: { id: 'id', source: 'site', status: 'state', startedAt: 'began' },
    statuses: { active: 'running', failed: 'failed' },
  }
}

for (const engine of [sqliteEngine, postgresEngine]) {
  test(`a run is found by its source as it is shown, be it the name of the table or what was made a name, ${engine.name}`, async () => {
    await using ctx = await createAdoptedTestContext(engine, {
      jobs: {
        table: sourceless,
        rows: [
          { id: 'a', site: null, began: minutesAgo(1), state: 'running' },
          { id: 'b', site: '', began: minutesAgo(2), state: 'failed' },
          { id: 'c', site: 'x\ty\u202E', began: minutesAgo(3), state: 'running' },
          { id: 'd', site: 'jobs', began: minutesAgo(4), state: 'failed' },
        ],
      },
    })
    const { store } = ctx
    const keys = async (filter: Partial<RunFilter>) =>
      (await store.runs({ limit: 9, ...filter })).items.map(({ traits }) => traits.origin?.key)

    assert.deepEqual(await keys({ source: 'jobs' }), ['a', 'b', 'd'])
    assert.deepEqual(await keys({ source: 'jobs', statuses: ['failed'] }), ['b', 'd'])
    assert.deepEqual(await keys({ source: 'x y' }), ['c'])
    assert.deepEqual(await keys({ source: 'x' }), [])
    assert.equal((await store.liveRun('jobs'))?.traits.origin?.key, 'a')
    assert.equal((await store.liveRun('x y'))?.traits.origin?.key, 'c')
  })
}

test('a short id that is the end of two names both, whatever was seen of them before', async () => {
  // Found by trying: these two keys have the same last eight digits under this name.
  const [one, other] = [2316, 50940]
  await using ctx = await createAdoptedTestContext(sqliteEngine, {
    w: {
      table: tenderRuns,
      rows: [one, other].map((id) => ({ id, portal_name: 'p', status: 'running' })),
    },
  })
  const { id } = await ctx.run('w', one)
  const fresh = await ctx.openAnother()
  assert.equal((await fresh.run(id))?.traits.origin?.key, String(one))

  const found = await fresh.idsEnding(shortId(id), 'run')

  assert.equal(found.length, 2)
  assert.deepEqual(await fresh.idsEnding(id, 'run'), [id])
})

test('a row has the same ids always, and is found by them, and by their last digits, in a process that never saw it', async () => {
  await using ctx = await createAdoptedTestContext(sqliteEngine, {
    courses: {
      table: crawlRuns,
      rows: [
        { id: 'a', course_id: 'x', started_at: minutesAgo(1) },
        { id: 'b', course_id: 'y\u202E\n', started_at: minutesAgo(2) },
      ],
    },
    yp: { table: ypTargets, rows: [{ id: 7, slug: 'seven' }] },
  })
  const { items: seen } = await ctx.store.runs({ limit: 9 })
  const [target] = (
    await ctx.store.targets(seen.find(({ kind }) => kind === 'crawl')!.id, { limit: 9 })
  ).items

  const fresh = await ctx.openAnother()
  assert.deepEqual(await fresh.idsEnding(shortId(seen[0]!.id), 'run'), [seen[0]!.id])
  const searched = await fresh.runs({ search: shortId(seen[1]!.id).toUpperCase(), limit: 5 })
  assert.deepEqual(
    searched.items.map(({ id }) => id),
    [seen[1]!.id],
  )
  assert.deepEqual(await fresh.idsEnding(shortId(target!.id), 'target'), [target!.id])
  assert.deepEqual(await fresh.idsEnding(shortId(target!.id), 'run'), [])
  for (const { id, traits } of seen) assert.deepEqual((await fresh.run(id))?.traits, traits)
  assert.equal((await (await ctx.openAnother()).target(target!.id))?.key, 'seven')
  assert.equal(await fresh.run('00000000-0000-8000-8000-000000000000'), null)
  assert.equal(await fresh.run(newId()), null)
  assert.equal(
    seen.find(({ traits }) => traits.origin?.key === 'b')?.source,
    'y',
    'a source is a name',
  )
})
