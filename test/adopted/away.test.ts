import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { STEADY } from '../../src/core/decide/liveness.ts'
import { newId, shortId } from '../../src/core/model/id.ts'
import { DEFAULT_POLICY } from '../../src/core/model/policy.ts'
import { adviseStart } from '../../src/core/recovery/advise-start.ts'
import { recover } from '../../src/core/recovery/recover.ts'
import type { Store } from '../../src/core/store/store.ts'
import { surveyStore } from '../../src/presenters/status.ts'
import { ENGINES } from '../../src/testing/adopted-tables.ts'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { crawlRuns, qualificationRuns, tenderRuns } from '../../src/testing/users-tables.ts'
import { ago, setStage } from './stage.ts'

const AWAY = /adopted table tenders cannot be read/

test('a table that is away takes nothing from our own runs and other tables, is seen by people, and is tried again', async () => {
  await using stage = await setStage(
    sqliteEngine,
    {
      qualification: {
        table: qualificationRuns,
        rows: [{ id: 'old', status: 'PROCESSING', total: 1, createdAt: ago(10) }],
      },
      tenders: { table: tenderRuns, rows: [{ portal_name: 'p', status: 'running' }] },
    },
    { staleAfterMs: 5 * 60_000, onStale: 'fail' },
  )
  const id = newId()
  await stage.store.enqueue({ id, source: 'own', kind: 'crawl', policy: DEFAULT_POLICY })
  const tender = await stage.run('tenders', 1)
  await stage.sql('ALTER TABLE runs RENAME TO elsewhere')
  // One that had found it, and one that never does.
  for (const store of [stage.store, await stage.another()]) {
    const sources = async () => (await store.liveRuns()).map(({ run }) => run.source).sort()
    assert.deepEqual(await sources(), ['own', 'qualification'])
    const { items, next } = await store.runs({ limit: 9 })
    assert.deepEqual([items.length, next], [2, null])
    assert.equal((await store.runTotals()).queued, 1)
    await Promise.all([store.lastFailed(), store.workers(), store.holdings(), store.targetTotals()])
    await store.deadLetters({ limit: 5 })
    assert.equal(await store.liveRun('p'), null)
    assert.deepEqual(await store.runsEnding(shortId(id)), [id])

    await assert.rejects(store.run(tender.id), { code: 'E_DB_UNREACHABLE', message: AWAY })
    await assert.rejects(store.runsEnding(shortId(tender.id)), { message: AWAY })
    await assert.rejects(adviseStart({ store }, 'p'), {
      code: 'E_DB_UNREACHABLE',
      message: /Whether p is running cannot be told: .* tenders/,
    })
    assert.equal((await adviseStart({ store }, 'own')).run?.id, id)
    assert.match(store.remarks.join('\n'), AWAY)
    const { data } = await surveyStore(store)
    assert.match(data.summary, /^Not all can be seen: tenders cannot be read/)
    assert.deepEqual(data.attention.map(({ source, command }) => [source, command]).at(-1), [
      'tenders',
      'unstuck doctor',
    ])
  }
  const { verdicts, away } = await recover(stage.door, { judge: STEADY })
  assert.deepEqual(
    away.map(({ table }) => table),
    ['tenders'],
  )
  assert.deepEqual(
    verdicts.map(({ source, applied }) => [source, applied]),
    [['qualification', true]],
  )
  for (const [line, said] of Map.groupBy(stage.lines, (line) => line))
    assert.ok(said.length <= 2, `each says it once: ${line}`)

  await stage.sql('ALTER TABLE elsewhere RENAME TO runs')
  let found = await stage.store.liveRuns()
  for (const until = Date.now() + 60_000; found.length < 2 && Date.now() < until;)
    found = await stage.store.liveRuns()
  assert.deepEqual(found.map(({ run }) => run.source).sort(), ['own', 'p'])
  assert.deepEqual(stage.store.away, [])
  assert.equal((await stage.store.run(tender.id))?.source, 'p')
})

const UUIDS = [1, 2].map((n) => `00000000-0000-4000-8000-00000000000${n}`)
const CRAWLS = UUIDS.map((id) => ({ id, course_id: 'art', started_at: ago(10) }))
const STALE = { staleAfterMs: 5 * 60_000, onStale: 'fail' } as const

for (const engine of ENGINES) {
  test(`${engine.name}: a table that was altered meanwhile is found anew with the next look`, async () => {
    const options = { alive: () => undefined }
    await using stage = await setStage(engine, {
      crawls: { table: crawlRuns, rows: CRAWLS, options },
    })
    assert.equal((await stage.store.liveRuns()).length, 2)
    await stage.sql(`ALTER TABLE ${crawlRuns.sql[engine.name]} DROP COLUMN triggered_by`)
    assert.equal((await stage.store.liveRuns()).length, 0)
    await untilSeen(stage.store, 2)
    assert.deepEqual(stage.store.away, [])
  })
}

test('postgres: so is one whose columns have another type, be it seen when it is read or when it is written', async () => {
  await using stage = await setStage(
    postgresEngine,
    { crawls: { table: crawlRuns, rows: CRAWLS } },
    STALE,
  )
  assert.equal((await stage.store.liveRuns()).length, 2)
  await stage.sql(/* sql */ `
    CREATE TYPE state AS ENUM ('running', 'success', 'failed', 'cancelled', 'Timeout - Auto-cleaned');
    ALTER TABLE course_crawler.crawl_runs ALTER status DROP DEFAULT, ALTER status TYPE state USING status::state;
  `)
  assert.equal((await stage.store.liveRuns()).length, 0)
  await untilSeen(stage.store, 2)

  await stage.sql(
    'ALTER TABLE course_crawler.crawl_runs ALTER error TYPE jsonb USING to_jsonb(error)',
  )
  await recover(stage.door, { judge: STEADY })
  assert.match(stage.lines.join(), /fail of row .* no longer as it was found/)
  await recover(stage.door, { judge: STEADY })
  assert.deepEqual(
    (await stage.rows('crawls')).map(({ status }) => status),
    ['failed', 'failed'],
  )
})

async function untilSeen(store: Store, runs: number): Promise<void> {
  const until = Date.now() + 60_000
  while ((await store.liveRuns()).length < runs) {
    assert.ok(Date.now() < until, `not seen: ${JSON.stringify(store.away)}`)
    await sleep(50)
  }
}
