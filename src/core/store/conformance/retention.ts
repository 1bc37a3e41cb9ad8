import assert from 'node:assert/strict'
import { test } from 'node:test'
import { METRICS_STORE } from '../../../features/metrics/store/store.ts'
import { recordLatency, emptyStats, sumStats } from '../../model/latency.ts'
import type { WorkerId } from '../../model/id.ts'
import { assertCountersConsistent } from '../../../testing/assert-counters.ts'
import { claimOne, registerWorker, savePage, enqueueCrawl } from '../../../testing/fixtures.ts'
import type { Engine } from '../../../testing/test-database.ts'
import { openStore } from '../open.ts'
import type { Store } from '../store.ts'

export function retentionTests(engine: Engine): void {
  test('P14 many ended workers: their rows are removed, the books, totals and measurements stay', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await enqueueCrawl(store, 60)
    const ended: WorkerId[] = []
    for (let n = 0; n < 40; n++) {
      // On PostgreSQL each worker counts in rows of its own.
      const worker = await registerWorker(store)
      await using theirs = await ownStore(db.url, worker)
      await savePage(theirs.store, await claimOne(theirs.store, worker), { done: true })
      const stats = emptyStats()
      recordLatency(stats.checkpoint, 1)
      await theirs.store.heartbeat({ worker, claimIds: [], loopLagMs: 0, stats })
      await theirs.store.retireWorker(worker)
      ended.push(worker)
    }
    const alive = await registerWorker(store)
    const before = await figures(store, run)
    const now = await store.now()

    await store.prune({ statsBefore: now + 60_000 })
    const removed = (await store.prune({ workers: beforeNow(now) })).workers

    assert.equal(removed, 39, 'one row keeps the sum of what they have measured')
    assert.equal((await known(store, ended)).length, 1)
    assert.notEqual(await store.worker(alive), null)
    assert.equal((await store.prune({ workers: beforeNow(now) })).workers, 0)
    assert.deepEqual(await figures(store, run), before)
    await assertCountersConsistent(store, run)
    assert.deepEqual(
      (await store.observations()).map(({ worker }) => worker.id),
      [alive],
    )
  })

  test('a row stays while a claim or a guard refers to it', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [claimant, watchdog, idle] = [
      await registerWorker(store),
      await registerWorker(store),
      await registerWorker(store),
    ]
    const run = await enqueueCrawl(store, 1)
    await claimOne(store, claimant)
    await store.lockSource({ source: 'x', worker: watchdog, killTimeoutMs: 1, processTag: 'c' })
    await store.moveRun({
      run,
      to: 'cancelled',
      action: 'cancel',
      actor: 'a',
      because: 'b',
      evidence: null,
      expected: {},
    })
    for (const worker of [claimant, watchdog, idle]) await store.retireWorker(worker)
    const now = await store.now()

    await store.prune({ workers: beforeNow(now) })

    assert.deepEqual(await known(store, [claimant, watchdog, idle]), [claimant, watchdog])
  })

  test('of recently ended workers the newest are kept, and all that ended a moment ago', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const ended: WorkerId[] = []
    for (let n = 0; n < 6; n++) {
      const worker = await registerWorker(store)
      await store.retireWorker(worker)
      ended.push(worker)
      // Those that end within one millisecond have no order.
      for (const endedAt = await store.now(); (await store.now()) <= endedAt;);
    }
    const now = await store.now()
    const bounds = { endedBefore: now - 60_000, settledBefore: now - 60_000, keepNewest: 2 }

    assert.equal((await store.prune({ workers: bounds })).workers, 0, 'they ended a moment ago')
    const settled = { ...bounds, settledBefore: now + 60_000 }
    assert.equal((await store.prune({ workers: settled })).workers, 4)
    assert.deepEqual(await known(store, ended), ended.slice(-2))
  })

  test('a removed worker that beats again is refused, and nothing is changed', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    await store.retireWorker(worker)
    await store.prune({ workers: beforeNow(await store.now()) })

    await assert.rejects(store.heartbeat({ worker, claimIds: [], loopLagMs: 0 }), /does not know/)
    assert.equal(await store.worker(worker), null)
  })
}

async function ownStore(url: string, writer: WorkerId) {
  const store = await openStore(url, { writer })
  return { store, [Symbol.asyncDispose]: () => store.close() }
}

const beforeNow = (now: number) => ({
  endedBefore: now + 60_000,
  settledBefore: now + 60_000,
  keepNewest: 0,
})

async function known(store: Store, workers: readonly WorkerId[]): Promise<WorkerId[]> {
  const rows = await Promise.all(workers.map((id) => store.worker(id)))
  return workers.filter((_, n) => rows[n] !== null)
}

async function figures(store: Store, run: string) {
  return {
    run: (await store.run(run))?.counts,
    totals: await store.targetTotals(),
    stats: sumStats(await (await store.extend(METRICS_STORE)).workerStats()),
  }
}
