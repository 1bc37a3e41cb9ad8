import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../model/id.ts'
import { parseStats, type LatencyHistogram } from '../model/latency.ts'
import { DEFAULT_POLICY } from '../model/policy.ts'
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
import { heartbeatOptions } from '../recovery/monitor.ts'
import { open } from '../../interfaces/library/open.ts'
import { Sampler } from './sampler.ts'
import { LatencyRecorder } from './latency-recorder.ts'

const total = ({ counts }: LatencyHistogram): number => counts.reduce((sum, n) => sum + n, 0)

for (const engine of [sqliteEngine, postgresEngine]) {
  test(`${engine.name}: an ended process has its measurements in its row, and its runs were sampled`, async () => {
    await using database = await engine.fresh()
    const store = await database.open()
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
    assert.deepEqual(
      samples.map(({ run, pages, items }) => ({ run, pages, items })),
      [{ run: run.id, pages: 5, items: 10 }],
    )
  })

  test(`${engine.name}: of several processes one samples`, async () => {
    await using database = await engine.fresh()
    const store = await database.open()
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
      for (const worker of workers) await new Sampler(counted, worker, REAL_CLOCK).sample()
    }
    assert.equal(taken, 3)
    const now = await store.now()
    const samples = await store.samples({ since: now - 120_000, until: now + 1 })
    assert.ok(samples.length >= 1)
    assert.equal(samples.at(-1)!.pages, 1)
  })

  test(`${engine.name}: the process that samples deletes expired sessions`, async () => {
    await using database = await engine.fresh()
    const store = await database.open()
    const session = { id: 'a', token: 'maria', tokenMark: 'b', lastsMs: 1_000 }
    await store.createSession(session)
    await store.createSession({ ...session, id: 'c', lastsMs: 3_600_000 })
    await database.advanceClock(60_000)

    await new Sampler(store, await registerWorker(store), REAL_CLOCK).sample()

    const left = await database.raw(`SELECT id FROM ${database.table('http_session')}`)
    assert.deepEqual(
      left.map(({ id }) => id),
      ['c'],
    )
  })
}

test('a last sample that hangs blocks neither the presence lock nor the stop', async () => {
  await using database = await sqliteEngine.fresh()
  const store = await database.open()
  const worker = await registerWorker(store)
  let isLetGo = false
  let wasLetGo = false
  const slow: Store = {
    ...store,
    acquirePresence: async (id) => {
      const held = await store.acquirePresence(id)
      return { ...held, release: () => held.release().finally(() => (isLetGo = true)) }
    },
    takeSample: () => {
      wasLetGo = isLetGo
      return new Promise(() => {})
    },
  }
  const policy = { ...heartbeatOptions(DEFAULT_POLICY), graceMs: 60_000 }
  const host = {
    claims: () => ({ held: [], requested: [] }),
    loopLagMs: () => 0,
    takeStats: () => undefined,
    emit: () => {},
    onHeartbeat: () => {},
    onRecovered: () => {},
    onFatal: assert.fail,
  }
  const options = { worker: newId(), source: '', version: '1', ...policy }
  const service = new HeartbeatService(slow, options, host, REAL_CLOCK)
  await service.start()

  await service.stop()

  assert.ok(wasLetGo)
  assert.deepEqual(
    (await store.observations()).map((one) => one.worker.id),
    [worker],
  )
})

test('a call that failed is not counted', async () => {
  await using database = await sqliteEngine.fresh()
  const store = await database.open()
  const stopwatch = new LatencyRecorder(() => {})
  const failing = stopwatch.instrument({ ...store, claim: () => Promise.reject(new Error('away')) })
  await assert.rejects(
    failing.claim({ worker: newId(), source: 's', claimIds: [], isIdle: true, singleSlot: false }),
  )
  assert.equal(total(stopwatch.stats.claim), 0)
})
