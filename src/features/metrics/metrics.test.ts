import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import client from 'prom-client'
import { StoreUnavailableError } from '../../core/model/errors.ts'
import { newId } from '../../core/model/id.ts'
import { recordLatency, emptyStats } from '../../core/model/latency.ts'
import { BUILD_INFO, METRICS, UP } from './prometheus.ts'
import { makePolicyOf, NO_OVERRIDES } from '../../core/model/policy-of.ts'
import type { AuditFilter, Store } from '../../core/store/store.ts'
import {
  recoverWorker,
  claim,
  claimOne,
  registerWorker,
  nextCheckpoint,
  enqueueSingle,
  savePage,
  makeItems,
  enqueueCrawl,
} from '../../testing/fixtures.ts'
import { createHttpTestContext, type HttpTestContext } from '../../testing/http-test-context.ts'
import { postgresEngine } from '../../testing/postgres-engine.ts'
import { parsePrometheus, type TextMetric } from '../../testing/prometheus-text.ts'
import { sqliteEngine } from '../../testing/sqlite-engine.ts'
import { VERSION } from '../../core/host/version.ts'
import { MetricsCollector } from './figures.ts'
import { ErrorLog } from '../../interfaces/http/error-log.ts'
import type { ServerContext } from '../../contracts/route.ts'
import { HTTP_METRICS, registerMetrics, scrape as answer } from './route.ts'
import { ALERT_STORE } from '../alerts/store/store.ts'

const policyOf = makePolicyOf(NO_OVERRIDES)

async function scrape(ctx: HttpTestContext): Promise<Map<string, TextMetric>> {
  const { status, headers, body } = await ctx.call('GET', '/metrics', { as: 'viewer' })
  assert.equal(status, 200)
  assert.equal(headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8')
  return parsePrometheus(body)
}

/** The value of a series, by its name and the values of its labels. */
function valueOf(metrics: Map<string, TextMetric>, name: string, ...labels: string[]): number {
  const metric = metrics.get(name.replace(/_(bucket|sum|count)$/, '')) ?? metrics.get(name)
  const found = metric?.samples.filter(
    (sample) => sample.name === name && Object.values(sample.labels).join() === labels.join(),
  )
  assert.equal(found?.length, 1, `${name} ${labels.join()}`)
  return found[0]!.value
}

for (const engine of [sqliteEngine, postgresEngine]) {
  test(`${engine.name}: the metrics match the counters and the audit trail`, async () => {
    await using ctx = await createHttpTestContext({ engine })
    const { store } = ctx
    const [me, other] = [
      await registerWorker(store, { leaseMs: 600_000 }),
      await registerWorker(store),
    ]
    await enqueueCrawl(store, 10)
    const mine = await savePage(store, await claimOne(store, me), { items: makeItems(0, 4) })
    await savePage(store, mine, { items: makeItems(3, 2, 'changed') })
    const lost = await claim(store, other, 3)
    await store.checkpoint([nextCheckpoint(lost[0]!, { items: makeItems(3, 1, 'changed') })])
    await recoverWorker(store, other)
    await store.checkpoint([nextCheckpoint({ ...lost[1]!, seq: 0 })])
    const stats = emptyStats()
    for (const seconds of [0.002, 0.004, 0.4]) recordLatency(stats.checkpoint, seconds)
    await store.heartbeat({ worker: me, claimIds: [mine.claimId], loopLagMs: 0, stats })
    await enqueueSingle(store, 'waiting')
    const alert = { cause: 'c', owner: 'o', rule: 'dead', source: null, run: null, because: 'x' }
    await (await store.extend(ALERT_STORE)).raiseAlert({ ...alert, command: 'y' })

    const metrics = await scrape(ctx)
    const value = (name: string, ...labels: string[]) => valueOf(metrics, name, ...labels)
    assert.equal(value(UP), 1)
    assert.equal(value(BUILD_INFO, VERSION, engine.name), 1)
    assert.equal(value('unstuck_runs', 'running'), 1)
    assert.equal(value('unstuck_runs', 'queued'), 1)
    assert.equal(value('unstuck_live_runs', 'healthy'), 1)
    assert.equal(value('unstuck_live_runs', 'waiting'), 1)
    assert.equal(value('unstuck_targets', 'in_progress'), 1)
    assert.equal(value('unstuck_targets', 'planned'), 10)
    assert.equal(value('unstuck_pages_total'), 3)
    assert.equal(value('unstuck_items_total', 'new'), 5)
    assert.equal(value('unstuck_items_total', 'updated'), 1)
    assert.equal(value('unstuck_items_total', 'unchanged'), 1)
    assert.equal(value('unstuck_fenced_writes_total'), 1)
    // Three targets of one run that one worker left: one orphaned run.
    assert.equal(value('unstuck_orphaned_runs_recovered_total', 'gone'), 1)
    assert.equal(value('unstuck_orphaned_runs_recovered_total', 'silent'), 0)
    assert.equal(value('unstuck_orphaned_runs_duration_seconds_count'), 1)
    assert.equal(value('unstuck_orphaned_runs_duration_seconds_sum'), 1.234)
    assert.equal(value('unstuck_orphaned_runs_duration_seconds_bucket', '2.5'), 1)
    assert.equal(value('unstuck_orphaned_runs_duration_seconds_bucket', '1'), 0)
    assert.equal(value('unstuck_checkpoint_duration_seconds_count'), 3)
    assert.equal(value('unstuck_checkpoint_duration_seconds_bucket', '0.005'), 2)
    assert.equal(value('unstuck_claim_duration_seconds_count'), 0)
    assert.equal(value('unstuck_workers', 'present'), 2)
    assert.equal(value('unstuck_alerts_open'), 1)
    assert.ok(value('unstuck_oldest_activity_seconds') >= 0)
  })
}

test('the time from a loss to the next claim is measured, and later ones are added', async () => {
  await using database = await sqliteEngine.fresh()
  const store = await database.open()
  const keeper = new MetricsCollector(store, policyOf, 0)
  const [one, two] = [await registerWorker(store), await registerWorker(store)]
  await enqueueCrawl(store, 1)
  await claimOne(store, one)
  await recoverWorker(store, one)
  const before = (await keeper.collect())!
  assert.equal(before.orphaned!['gone'], 1)
  assert.equal(sum(before.recoveryDuration.counts), 0)
  await claimOne(store, two, { isIdle: true })
  await recoverWorker(store, two)
  assert.equal((await keeper.collect())!.orphaned!['gone'], 2)
  await claimOne(store, await registerWorker(store), { isIdle: true })
  const { orphaned, recoveryDuration } = (await keeper.collect())!
  keeper.stop()
  assert.equal(orphaned!['gone'], 2)
  assert.equal(sum(recoveryDuration.counts), 1)
  // Its last heartbeat was 1.234 s before it was recovered.
  assert.ok(recoveryDuration.seconds > 1.2 && recoveryDuration.seconds < 6)
})

test('while a long trail is read the rest is answered, and half a count is none', async () => {
  await using database = await sqliteEngine.fresh()
  const store = await database.open()
  const me = await registerWorker(store)
  await enqueueCrawl(store, 1)
  await claimOne(store, me)
  await recoverWorker(store, me)
  const read = Promise.withResolvers<void>()
  let looks = 0
  const slow = {
    ...store,
    audit: async (filter: AuditFilter) => (await read.promise, store.audit(filter)),
    runTotals: () => (looks++, store.runTotals()),
  }
  const keeper = new MetricsCollector(slow, policyOf, 0)
  const [early] = await Promise.all([keeper.collect(), keeper.collect()])
  assert.deepEqual([early!.orphaned, early!.orphanedDuration, early!.runs.running], [null, null, 1])
  read.resolve()
  // Asked again and again while one look is under way, it is that one.
  const asked = keeper.collect()
  await Promise.all([keeper.collect(), asked])
  assert.equal(looks, 2)
  assert.equal((await keeper.collect())!.orphaned!['gone'], 1)
  keeper.stop()
})

function sum(counts: readonly number[]): number {
  return counts.reduce((total, n) => total + n, 0)
}

test('a counter does not go back when a run is deleted', async () => {
  await using database = await sqliteEngine.fresh()
  const store = await database.open()
  const keeper = new MetricsCollector(store, policyOf, 0)
  const me = await registerWorker(store)
  const run = await enqueueCrawl(store, 1)
  await savePage(store, await claimOne(store, me), { done: true })
  await store.settle()
  assert.equal((await keeper.collect())!.counters.pages, 1)
  await store.deleteRun({ run, withItems: false, actor: 'a person', because: 'x' })
  const { counters } = (await keeper.collect())!
  keeper.stop()
  assert.equal(counters.pages, 1)
  assert.equal(counters.targets.done, 0)
})

test('without a database the metrics report it as down and omit what is unknown', async () => {
  let isAway = true
  await using real = await createHttpTestContext()
  const guarded = new Proxy(real.store, {
    get: (store, name: keyof Store) => {
      const verb = store[name]
      const isAsked = typeof verb === 'function' && isAway
      return isAsked ? () => Promise.reject(new StoreUnavailableError('away')) : verb
    },
  })
  await using ctx = await createHttpTestContext({ app: { open: async () => guarded } })
  const metrics = await scrape(ctx)
  assert.equal(valueOf(metrics, UP), 0)
  for (const { name } of METRICS) assert.equal(metrics.get(name)?.samples.length, 0, name)
  isAway = false
  assert.equal(valueOf(await scrape(ctx), UP), 1)
})

test('an error of the first scrape is retried by the next', async () => {
  await using database = await sqliteEngine.fresh()
  const store = await database.open()
  const closing = new AbortController()
  const errorLog = new ErrorLog(() => {})
  const server = {
    store,
    settings: null,
    callCounts: errorLog,
    closing: closing.signal,
  } as unknown as ServerContext
  await assert.rejects(answer(server), TypeError)
  Object.assign(server, { settings: { policyOf } })
  assert.equal((await answer(server)).status, 200)
  closing.abort()
})

test('concurrent scrapes share one read, and labels are bounded', async () => {
  await using database = await sqliteEngine.fresh()
  const store = await database.open()
  let looks = 0
  const counted = { ...store, targetTotals: () => (looks++, store.targetTotals()) }
  for (let n = 0; n < 30; n++) {
    await enqueueCrawl(store, 50, { source: `source-${n}` })
    const me = await registerWorker(store, { id: newId(), source: `source-${n}` })
    await claim(store, me, 3, { source: `source-${n}` })
    await recoverWorker(store, me)
  }
  const registry = new client.Registry()
  const stop = await registerMetrics(registry, { store: counted, policyOf })
  const texts = await Promise.all(Array.from({ length: 20 }, () => registry.metrics()))
  stop()
  assert.equal(looks, 1)
  const metrics = parsePrometheus(texts[0]!)
  const series = [...metrics.values()].flatMap(({ samples }) => samples)
  assert.ok(series.length < 200, `${series.length} series`)
  assert.equal(valueOf(metrics, 'unstuck_orphaned_runs_recovered_total', 'gone'), 30)
  assert.doesNotMatch(texts[0]!, /source-|t00|[0-9a-f]{8}-/)
})

test('a registry of one’s own has them beside its own', async () => {
  await using database = await sqliteEngine.fresh()
  const registry = new client.Registry()
  new client.Counter({ name: 'mine_total', help: 'Mine.', registers: [registry] }).inc()
  const stop = await registerMetrics(registry, { store: await database.open(), policyOf })
  const metrics = parsePrometheus(await registry.metrics())
  stop()
  assert.equal(valueOf(metrics, 'mine_total'), 1)
  assert.equal(valueOf(metrics, UP), 1)
  const json = await registry.getMetricsAsJSON()
  assert.equal(json.length, METRICS.length + 3)
})

test('every metric is in docs/reference/metrics.md, and nothing else', () => {
  const docs = readFileSync(new URL('../../../docs/reference/metrics.md', import.meta.url), 'utf8')
  const told = new Set([...docs.matchAll(/^\| `(unstuck_\w+)`/gm)].map(([, name]) => name))
  assert.deepEqual(
    told,
    new Set([UP, BUILD_INFO, ...[...METRICS, ...HTTP_METRICS].map(({ name }) => name)]),
  )
})
