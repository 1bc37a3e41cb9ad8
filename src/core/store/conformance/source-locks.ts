import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SourceLock } from '../../model/source-lock.ts'
import { newId, type WorkerId } from '../../model/id.ts'
import { DEFAULT_POLICY } from '../../model/policy.ts'
import {
  begin,
  beginOne,
  claimOne,
  registerWorker,
  unwrap,
  SOURCE,
  enqueueCrawl,
} from '../../../testing/fixtures.ts'
import { startStoreProcesses } from '../../../testing/store-process.ts'
import type { Engine } from '../../../testing/test-database.ts'
import type { BeginResult, BeginRequest, LockSourceRequest, Store } from '../store.ts'

export function sourceLockTests(engine: Engine): void {
  test('P10 one lock per source: of forty concurrent requests, in many processes, one holds it', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    await using processes = await startStoreProcesses(db.url, 3, 4)
    const workers = await Promise.all(Array.from({ length: 40 }, () => registerWorker(store)))

    const answers = await Promise.all(
      workers.map((worker, n) => {
        const other = processes.all[n % 4]
        return other ? other.call(n % 4, 'lockSource', asked(worker)) : lock(store, worker)
      }),
    )

    const holder = answers[0]!.worker
    assert.ok(holder !== null && workers.includes(holder))
    for (const answer of answers) assert.deepEqual(answer, answers[0])
    assert.deepEqual((await store.sourceLocks(SOURCE))[0], answers[0])
  })

  test('P10 a worker that registers while others request the lock competes on equal terms', async () => {
    await using db = await engine.fresh()
    const stores = await Promise.all(Array.from({ length: 6 }, () => db.open()))
    for (let round = 1; round <= 10; round++) {
      const source = `source ${round}`

      const answers = await Promise.all(
        stores.map(async (store) => lock(store, await registerWorker(store), { source })),
      )

      for (const answer of answers) assert.equal(answer.worker, answers[0]!.worker, source)
    }
  })

  test('the first guard of a source is as asked for, and others see it', async () => {
    await using db = await engine.fresh()
    const [store, theirs] = [await db.open(), await db.open()]
    const worker = await registerWorker(store)
    assert.deepEqual(await store.sourceLocks(SOURCE), [])
    assert.deepEqual(await store.sourceLocks(), [])

    const sourceLock = await lock(store, worker, { killTimeoutMs: 45_000, processTag: 'c0' })

    const { since, ...rest } = sourceLock
    assert.ok(Math.abs(since! - (await store.now())) < 5_000)
    assert.deepEqual(rest, {
      source: SOURCE,
      worker,
      killTimeoutMs: 45_000,
      unlockingSince: null,
      processTag: 'c0',
      gaveUp: null,
    })
    await lock(theirs, worker, { source: 'another' })
    assert.deepEqual((await theirs.sourceLocks(SOURCE))[0], sourceLock)
    assert.deepEqual(
      (await theirs.sourceLocks()).map(({ source }) => source),
      ['another', SOURCE],
    )
  })

  test('P12 a repeated request of the holder gets the same result', async () => {
    await using db = await engine.fresh()
    const [store, again] = [await db.open(), await db.open()]
    const worker = await registerWorker(store)
    await lock(store, worker)
    await db.advanceClock(5_000)
    const before = (await store.sourceLocks(SOURCE))[0]

    assert.deepEqual(await lock(again, worker), before)
    const instead = { worker, heartbeats: 0 }
    assert.deepEqual(await lock(again, worker, { takeOverFrom: instead }), before)
    assert.deepEqual((await again.sourceLocks(SOURCE))[0], before)
  })

  test('a source lock whose holder has not ended is returned as it is', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [holder, other] = [await registerWorker(store), await registerWorker(store)]
    const sourceLock = await lock(store, holder)

    assert.deepEqual(
      await lock(store, other, { killTimeoutMs: 1, processTag: 'other' }),
      sourceLock,
    )

    await db.advanceClock(3_600_000)
    const later = await lock(store, await registerWorker(store))
    assert.equal(later.worker, holder, 'its silence is for a judge to weigh')
  })

  test('a new holder finds nothing of the last one but the cookie', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const first = await registerWorker(store)
    const { processTag, since } = await lock(store, first)
    await store.markUnlocking(SOURCE, first)
    await store.unlockSource({ source: SOURCE, worker: first, gaveUp: 'five crashes in a minute' })
    await db.advanceClock(60_000)
    const second = await registerWorker(store)

    const sourceLock = await lock(store, second, { killTimeoutMs: 5_000 })

    const { since: now, ...rest } = sourceLock
    assert.ok(now! > since! - 30_000)
    const held = { worker: second, killTimeoutMs: 5_000, unlockingSince: null, gaveUp: null }
    assert.deepEqual(rest, { source: SOURCE, processTag, ...held })
  })

  test('a worker that still holds a guard is not retired: what its command left must be ended first', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [worker, other] = [await registerWorker(store), await registerWorker(store)]
    await lock(store, worker)

    await store.retireWorker(worker)

    assert.equal((await store.worker(worker))?.endedAt, null)
    assert.equal((await lock(store, other)).worker, worker)
    assert.equal(await store.unlockSource({ source: SOURCE, worker }), true)
    await store.retireWorker(worker)
    assert.notEqual((await store.worker(worker))?.endedAt, null)
    assert.equal((await lock(store, other)).worker, other)
  })

  test('a source lock whose holder has ended or is unknown can be taken', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [ended, unknown, taker] = [
      await registerWorker(store),
      await registerWorker(store),
      await registerWorker(store),
    ]
    await lock(store, ended)
    await lock(store, unknown, { source: 'unknown' })
    const worker = db.table('worker')
    await db.raw(`UPDATE ${worker} SET ended_at = started_at WHERE id = '${ended}'`)
    await db.raw(`DELETE FROM ${worker} WHERE id = '${unknown}'`)

    assert.equal((await lock(store, taker)).worker, taker)
    assert.equal((await lock(store, taker, { source: 'unknown' })).worker, taker)
  })

  test('P2 a holder is replaced only if it still is the one that was judged and has not beaten since', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [holder, next, third] = [
      await registerWorker(store),
      await registerWorker(store),
      await registerWorker(store),
    ]
    await lock(store, holder)
    const { heartbeats } = (await store.worker(holder))!
    await store.heartbeat({ worker: holder, claimIds: [], loopLagMs: 0 })

    const late = await lock(store, next, { takeOverFrom: { worker: holder, heartbeats } })
    const other = await lock(store, next, { takeOverFrom: { worker: third, heartbeats: 0 } })
    assert.deepEqual([late.worker, other.worker], [holder, holder])
    const current = { worker: holder, heartbeats: heartbeats + 1 }
    assert.equal((await lock(store, next, { takeOverFrom: current })).worker, next)

    assert.equal((await lock(store, third, { takeOverFrom: current })).worker, next)
  })

  test('P2 of many that replace the same holder one succeeds', async () => {
    await using db = await engine.fresh()
    const stores = await Promise.all(Array.from({ length: 8 }, () => db.open()))
    const workers = await Promise.all(stores.map((store) => registerWorker(store)))
    const dead = await registerWorker(stores[0]!)
    await lock(stores[0]!, dead)
    const instead = { worker: dead, heartbeats: 0 }

    const answers = await Promise.all(
      stores.map((store, n) => lock(store, workers[n]!, { takeOverFrom: instead })),
    )

    const holder = answers[0]!.worker!
    assert.ok(workers.includes(holder))
    for (const answer of answers) assert.equal(answer.worker, holder)
  })

  test('only the holder can mark itself as ending, and the first mark counts', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [worker, other] = [await registerWorker(store), await registerWorker(store)]
    await lock(store, worker)

    await store.markUnlocking(SOURCE, other)
    assert.equal((await store.sourceLocks(SOURCE))[0]?.unlockingSince, null)
    await store.markUnlocking(SOURCE, worker)
    await db.advanceClock(5_000)
    const before = (await store.sourceLocks(SOURCE))[0]
    await store.markUnlocking(SOURCE, worker)

    assert.ok(before?.unlockingSince)
    assert.deepEqual((await store.sourceLocks(SOURCE))[0], before)
    assert.deepEqual(await lock(store, other), before)
  })

  test("only the holder's guard is freed, and only while its beats are those that were seen", async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [worker, other] = [await registerWorker(store), await registerWorker(store)]
    const sourceLock = await lock(store, worker)
    await store.heartbeat({ worker, claimIds: [], loopLagMs: 0 })
    const free = { source: SOURCE, worker }

    assert.equal(await store.unlockSource({ ...free, worker: other }), false)
    assert.equal(await store.unlockSource({ ...free, source: 'no such source' }), false)
    assert.equal(await store.unlockSource({ ...free, heartbeats: 0 }), false)
    assert.deepEqual((await store.sourceLocks(SOURCE))[0], sourceLock)
    assert.equal(await store.unlockSource({ ...free, heartbeats: 1 }), true)
    assert.equal((await store.sourceLocks(SOURCE))[0]?.worker, null)
    assert.equal(await store.unlockSource(free), false)

    await lock(store, other)
    assert.equal(await store.unlockSource({ ...free, worker: other }), true)
  })

  test('a holder that gave up records the reason and the time', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    await lock(store, worker)

    await store.unlockSource({ source: SOURCE, worker, gaveUp: 'it ended five times in a minute' })

    const { gaveUp } = (await store.sourceLocks(SOURCE))[0]!
    assert.equal(gaveUp?.because, 'it ended five times in a minute')
    assert.ok(Math.abs(gaveUp.at - (await store.now())) < 5_000)
  })

  test('P10 begin is refused while another worker holds the source lock, and changes nothing', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [holder, other] = [await registerWorker(store), await registerWorker(store)]
    const dead = await beginOne(store, other)
    unwrap((await store.release([dead]))[0]!)
    const sourceLock = await lock(store, holder)
    const before = await store.run(dead.run)
    const auditInfo = { actor: 'the tests', because: 'dead', evidence: null }
    const clean = {
      run: dead.run,
      to: 'abandoned',
      action: 'abandon',
      expected: {},
      ...auditInfo,
    } as const

    assert.deepEqual(await store.begin({ ...request(other), abandonFirst: clean }), {
      claimed: null,
      sourceLock,
    })

    assert.deepEqual(await store.run(dead.run), before)
    assert.deepEqual(await store.audit({ limit: 10 }), [])
    assert.deepEqual(await begin(store, other), { claimed: null, sourceLock })
    const elsewhere = await begin(store, other, { source: 'another' })
    assert.ok(elsewhere.claimed, 'another source has another guard')
  })

  test('P10 of many concurrent begins while one holds the lock, only that one gets the run', async () => {
    await using db = await engine.fresh()
    const stores = await Promise.all(Array.from({ length: 6 }, () => db.open()))
    const workers = await Promise.all(stores.map((store) => registerWorker(store)))
    const sourceLock = await lock(stores[0]!, workers[3]!)

    const begun = await Promise.all(stores.map((store, n) => begin(store, workers[n]!)))

    assert.equal(begun[3]!.claimed?.worker, workers[3])
    for (const answer of begun)
      if (!answer.claimed) assert.deepEqual(sourceLockOf(answer), sourceLock)
    assert.equal((await stores[0]!.runs({ limit: 10 })).items.length, 1)
  })

  test('a source lock that is free, our own, or of an ended holder blocks no start', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [worker, gone] = [await registerWorker(store), await registerWorker(store)]
    for (const source of ['free', 'own', 'ended']) {
      await lock(store, source === 'ended' ? gone : worker, { source })
    }
    await store.unlockSource({ source: 'free', worker })
    const ended = `UPDATE ${db.table('worker')} SET ended_at = started_at WHERE id = '${gone}'`
    await db.raw(ended)

    for (const source of ['free', 'own', 'ended']) {
      const claimed = await beginOne(
        store,
        source === 'own' ? worker : await registerWorker(store),
        {
          source,
        },
      )
      assert.equal(claimed.source, source)
    }
  })

  test('P12 a repeated begin returns the claim that it made before the lock was taken', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [worker, holder] = [await registerWorker(store), await registerWorker(store)]
    const asks = request(worker)
    const first = await store.begin(asks)
    await lock(store, holder)

    assert.deepEqual(await store.begin(asks), first)
    assert.ok('sourceLock' in (await begin(store, worker)))
  })

  test('queueing, planning and claiming do not ask for the guard', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [holder, worker] = [await registerWorker(store), await registerWorker(store)]
    await lock(store, holder)

    await enqueueCrawl(store, 1)

    assert.equal((await claimOne(store, worker)).worker, worker)
  })
}

function asked(worker: WorkerId, more: Partial<LockSourceRequest> = {}): LockSourceRequest {
  return { source: SOURCE, worker, killTimeoutMs: 30_000, processTag: newId(), ...more }
}

function lock(
  store: Store,
  worker: WorkerId,
  more: Partial<LockSourceRequest> = {},
): Promise<SourceLock> {
  return store.lockSource(asked(worker, more))
}

function request(worker: WorkerId): BeginRequest {
  const ids = { run: newId(), target: newId(), claimId: newId() }
  return { source: SOURCE, worker, policy: DEFAULT_POLICY, ...ids }
}

function sourceLockOf(begun: BeginResult): SourceLock | null {
  return 'sourceLock' in begun ? begun.sourceLock : null
}
