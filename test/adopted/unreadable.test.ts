import { operatorContext } from '../../src/testing/fixtures.ts'
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { TRUSTED_OBSERVER } from '../../src/core/decide/liveness.ts'
import { newId, shortId } from '../../src/core/model/id.ts'
import { DEFAULT_POLICY } from '../../src/core/model/policy.ts'
import { adviseStart } from '../../src/presenters/check.ts'
import { recover } from '../../src/core/recovery/recover.ts'
import type { Store } from '../../src/core/store/store.ts'
import { loadOverview, presentOverview } from '../../src/presenters/overview.ts'
import { ENGINES } from '../../src/testing/open-test-table.ts'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { crawlRuns, qualificationRuns, tenderRuns } from '../../src/testing/user-tables.ts'
import { minutesAgo, createAdoptedTestContext } from './test-context.ts'

const UNREADABLE = /adopted table tenders cannot be read/

test('an unreadable table does not affect stored runs and other tables, is reported, and is retried', async () => {
  await using ctx = await createAdoptedTestContext(
    sqliteEngine,
    {
      qualification: {
        table: qualificationRuns,
        rows: [{ id: 'old', status: 'PROCESSING', total: 1, createdAt: minutesAgo(10) }],
      },
      tenders: { table: tenderRuns, rows: [{ portal_name: 'p', status: 'running' }] },
    },
    { staleAfterMs: 5 * 60_000, onStale: 'fail' },
  )
  const id = newId()
  await ctx.store.enqueue({ id, source: 'own', kind: 'crawl', policy: DEFAULT_POLICY })
  const tender = await ctx.run('tenders', 1)
  await ctx.sql('ALTER TABLE runs RENAME TO elsewhere')
  // One that had found it, and one that never does.
  for (const store of [ctx.store, await ctx.openAnother()]) {
    const sources = async () => (await store.liveRuns()).map(({ run }) => run.source).sort()
    assert.deepEqual(await sources(), ['own', 'qualification'])
    const { items, next } = await store.runs({ limit: 9 })
    assert.deepEqual([items.length, next], [2, null])
    assert.equal((await store.runTotals()).queued, 1)
    await Promise.all([
      store.runs({ latestFailed: true, limit: 500 }),
      store.observations(),
      store.holdings(),
      store.targetTotals(),
    ])
    await store.deadLetters({ limit: 5 })
    assert.equal(await store.liveRun('p'), null)
    assert.deepEqual(await store.idsEnding(shortId(id), 'run'), [id])

    await assert.rejects(store.run(tender.id), { code: 'E_DB_UNREACHABLE', message: UNREADABLE })
    await assert.rejects(store.idsEnding(shortId(tender.id), 'run'), { message: UNREADABLE })
    await assert.rejects(adviseStart(operatorContext(store), 'p'), {
      code: 'E_DB_UNREACHABLE',
      message: /Whether p is running is unknown: .* tenders/,
    })
    assert.equal((await adviseStart(operatorContext(store), 'own')).run?.id, id)
    assert.match(store.warnings.join('\n'), UNREADABLE)
    const { summary, view } = presentOverview(await loadOverview(operatorContext(store)))
    assert.match(summary, /^Not all can be seen: tenders cannot be read/)
    assert.deepEqual(view.attention.map(({ source, command }) => [source, command]).at(-1), [
      'tenders',
      'unstuck doctor',
    ])
  }
  const { verdicts, assessment } = await recover(ctx.operator, { observer: TRUSTED_OBSERVER })
  assert.deepEqual(
    assessment.unreadable.map(({ table }) => table),
    ['tenders'],
  )
  assert.deepEqual(
    verdicts.map(({ source, applied }) => [source, applied]),
    [['qualification', true]],
  )
  for (const [line, said] of Map.groupBy(ctx.lines, (line) => line))
    assert.ok(said.length <= 2, `each says it once: ${line}`)

  await ctx.sql('ALTER TABLE elsewhere RENAME TO runs')
  let found = await ctx.store.liveRuns()
  for (const until = Date.now() + 60_000; found.length < 2 && Date.now() < until;)
    found = await ctx.store.liveRuns()
  assert.deepEqual(found.map(({ run }) => run.source).sort(), ['own', 'p'])
  assert.deepEqual(ctx.store.unreadable, [])
  assert.equal((await ctx.store.run(tender.id))?.source, 'p')
})

const UUIDS = [1, 2].map((n) => `00000000-0000-4000-8000-00000000000${n}`)
const CRAWLS = UUIDS.map((id) => ({ id, course_id: 'art', started_at: minutesAgo(10) }))
const STALE = { staleAfterMs: 5 * 60_000, onStale: 'fail' } as const

for (const engine of ENGINES) {
  test(`${engine.name}: an altered table is re-read on the next sweep`, async () => {
    const options = { alive: () => undefined }
    await using ctx = await createAdoptedTestContext(engine, {
      crawls: { table: crawlRuns, rows: CRAWLS, options },
    })
    assert.equal((await ctx.store.liveRuns()).length, 2)
    await ctx.sql(`ALTER TABLE ${crawlRuns.sql[engine.name]} DROP COLUMN triggered_by`)
    assert.equal((await ctx.store.liveRuns()).length, 0)
    await waitForRuns(ctx.store, 2)
    assert.deepEqual(ctx.store.unreadable, [])
  })
}

test('postgres: so is a table whose column types changed, detected on read or on write', async () => {
  await using ctx = await createAdoptedTestContext(
    postgresEngine,
    { crawls: { table: crawlRuns, rows: CRAWLS } },
    STALE,
  )
  assert.equal((await ctx.store.liveRuns()).length, 2)
  await ctx.sql(/* sql */ `
    CREATE TYPE state AS ENUM ('running', 'success', 'failed', 'cancelled', 'Timeout - Auto-cleaned');
    ALTER TABLE course_crawler.crawl_runs ALTER status DROP DEFAULT, ALTER status TYPE state USING status::state;
  `)
  assert.equal((await ctx.store.liveRuns()).length, 0)
  await waitForRuns(ctx.store, 2)

  await ctx.sql(
    'ALTER TABLE course_crawler.crawl_runs ALTER error TYPE jsonb USING to_jsonb(error)',
  )
  await recover(ctx.operator, { observer: TRUSTED_OBSERVER })
  assert.match(ctx.lines.join(), /fail of row .* has changed/)
  await recover(ctx.operator, { observer: TRUSTED_OBSERVER })
  assert.deepEqual(
    (await ctx.rows('crawls')).map(({ status }) => status),
    ['failed', 'failed'],
  )
})

async function waitForRuns(store: Store, runs: number): Promise<void> {
  const until = Date.now() + 60_000
  while ((await store.liveRuns()).length < runs) {
    assert.ok(Date.now() < until, `not seen: ${JSON.stringify(store.unreadable)}`)
    await sleep(50)
  }
}
