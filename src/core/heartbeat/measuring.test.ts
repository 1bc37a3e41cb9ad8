import assert from 'node:assert/strict'
import { test } from 'node:test'
import { METRICS_STORE } from '../../features/metrics/store/store.ts'
import { openExtended } from '../../testing/test-database.ts'
import { newId, type WorkerId } from '../model/id.ts'
import { parseStats, type LatencyHistogram } from '../model/latency.ts'
import { DEFAULT_POLICY } from '../model/policy.ts'
import { NO_OVERRIDES } from '../model/policy-of.ts'
import type { Store } from '../store/store.ts'
import {
  claimOne,
  registerWorker,
  savePage,
  makeItems,
  enqueueCrawl,
} from '../../testing/fixtures.ts'
import { postgresEngine } from '../../testing/postgres-engine.ts'
import { sqliteEngine } from '../../testing/sqlite-engine.ts'
import { HeartbeatService } from './service.ts'
import { REAL_CLOCK } from '../host/clock.ts'
import { open } from '../../interfaces/library/unstuck.ts'
import { HeartbeatClient } from './client.ts'
import { runJob, type JobHost } from './jobs.ts'
import { sampleJob } from './sampling.ts'
import { heartbeatOptions, type FromService, type ToService } from './transport.ts'

const hostOf = (store: Store, worker: WorkerId): JobHost => ({
  clock: REAL_CLOCK,
  acquireLeadership: (role, forMs) => store.acquireLeadership(worker, forMs, role),
  onError: (_, error) => assert.fail(error as Error),
})

const total = ({ counts }: LatencyHistogram): number => counts.reduce((sum, n) => sum + n, 0)

for (const engine of [sqliteEngine, postgresEngine]) {
  test(`${engine.name}: an ended process has its measurements in its row, and its runs were sampled`, async () => {
    await using database = await engine.fresh()
    const store = await openExtended(database, METRICS_STORE)
    const unstuck = await open({ db: database.url, signals: false })
    const run = await unstuck.begin('own')
    for (let page = 1; page <= 5; page++)
      await run.checkpoint({ page, items: makeItems(page * 10, 2) })
    await run.succeed()
    await unstuck.close()
    const all = (await store.workerStats()).map(parseStats)
    assert.equal(all.length, 1)
    assert.equal(total(all[0]!.checkpoint), 5)
    assert.equal(total(all[0]!.claim), 1)
    assert.ok(all[0]!.checkpoint.seconds > 0)
    const now = await store.now()
    const samples = await store.samples({ since: now - 3_600_000, until: now + 1 })
    // On a busy machine the run is sampled while it works, too.
    const { pages, items, run: sampled } = samples.at(-1)!
    assert.deepEqual([sampled, pages, items], [run.id, 5, 10])
  })

  test(`${engine.name}: of several processes one takes samples`, async () => {
    await using database = await engine.fresh()
    const store = await openExtended(database, METRICS_STORE)
    const workers = [await registerWorker(store), await registerWorker(store)]
    await enqueueCrawl(store, 3)
    await savePage(store, await claimOne(store, workers[0]!))
    let taken = 0
    const counted = {
      ...store,
      takeSample: () => {
        taken++
        return store.takeSample()
      },
    }
    for (let n = 0; n < 3; n++) {
      for (const worker of workers) await runJob(sampleJob(counted), hostOf(store, worker))
    }
    assert.equal(taken, 3)
    const now = await store.now()
    const samples = await store.samples({ since: now - 120_000, until: now + 1 })
    assert.ok(samples.length >= 1)
    assert.equal(samples.at(-1)!.pages, 1)
  })
}

test('a last sample that hangs blocks neither the presence lock nor the stop', async () => {
  await using database = await sqliteEngine.fresh()
  const store = await database.open()
  const worker = await registerWorker(store)
  let isReleased = false
  let wasReleased = false
  const slow: Store = {
    ...store,
    acquirePresence: async (id) => {
      const held = await store.acquirePresence(id)
      return { ...held, release: () => held.release().finally(() => (isReleased = true)) }
    },
    takeSample: () => {
      wasReleased = isReleased
      return new Promise(() => {})
    },
    close: async () => {},
  }
  const options = heartbeatOptions(
    newId(),
    '',
    { ...DEFAULT_POLICY, startupGraceMs: 60_000 },
    NO_OVERRIDES,
  )
  const post = ({ type }: FromService): void => assert.notEqual(type, 'fatal')
  const host = { loopLagMs: () => 0, post }
  const service = new HeartbeatService(slow, options, host, REAL_CLOCK)
  await service.start()

  await service.stop()

  assert.ok(wasReleased)
  assert.deepEqual(
    (await store.observations()).map((one) => one.worker.id),
    [worker],
  )
})

test('a call to the store that fails is not measured', async () => {
  const posted: ToService[] = []
  let end = (): void => {}
  const transport = {
    post: (message: ToService) => {
      posted.push(message)
      if (message.type === 'stop') end()
    },
    listen: (_: unknown, onEnd: (error: null) => void) => (end = () => onEnd(null)),
    ref: () => {},
    unref: () => {},
  }
  const client = new HeartbeatClient(transport, DEFAULT_POLICY, { emit() {}, onFatal: assert.fail })
  await client.measure('checkpoint', async () => {})
  await assert.rejects(client.measure('claim', () => Promise.reject(new Error('unreachable'))))
  await client.stop()

  const [sent] = posted.filter((message) => message.type === 'stats')
  assert.equal(total(sent!.stats.checkpoint), 1)
  assert.equal(total(sent!.stats.claim), 0)
})
