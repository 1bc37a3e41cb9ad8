import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import type { ClaimedTarget } from '../../model/claim.ts'
import type { Store } from '../store.ts'
import {
  assertAllOk,
  beginOne,
  recoverWorker,
  claim,
  claimOne,
  registerWorker,
  unwrap,
  nextCheckpoint,
  enqueueCrawl,
} from '../../../testing/fixtures.ts'
import type { Engine } from '../../../testing/test-database.ts'

export function settleTests(engine: Engine): void {
  test('a run ends when it is planned and nothing is open, and not before', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    const run = await enqueueCrawl(store, 2, { planned: false })
    const [one, two] = await claim(store, worker, 2)

    assertAllOk(await store.finish([one!]))
    assert.deepEqual(await store.settle(run), [])
    assertAllOk(await store.finish([two!]))
    assert.deepEqual(await store.settle(run), [], 'more targets may come')
    await store.finishPlanning(run)

    assert.deepEqual(await store.settle(run), [{ run, status: 'succeeded' }])
    assert.deepEqual(await store.settle(run), [])
    const ended = await store.run(run)
    assert.equal(ended?.status, 'succeeded')
    assert.equal(ended?.error, null)
    assert.ok(ended?.finishedAt)
    assert.equal(await store.liveRun('shop'), null)
  })

  const notDone: Record<string, (store: Store, claim: ClaimedTarget) => Promise<unknown>> = {
    failed: (store, claim) => store.fail([{ ...claim, error: 'HTTP 500', becomes: 'failed' }]),
    parked: (store, claim) => store.fail([{ ...claim, error: 'set aside', becomes: 'parked' }]),
    stuck: (store, claim) => recoverWorker(store, claim.worker, 'hold'),
  }
  for (const [status, act] of Object.entries(notDone)) {
    test(`a run with a ${status} target ends as failed with the reason`, async () => {
      await using db = await engine.fresh()
      const store = await db.open()
      const run = await enqueueCrawl(store, 2)
      assertAllOk(await store.finish([await claimOne(store, await registerWorker(store))]))

      await act(store, await claimOne(store, await registerWorker(store)))

      assert.deepEqual(await store.settle(), [{ run, status: 'failed' }])
      const ended = await store.run(run)
      assert.equal(ended?.counts.targets.done, 1)
      assert.match(ended?.error ?? '', /HTTP 500|set aside|has ended/)
    })
  }

  test('a target in line for a retry keeps its run open', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await enqueueCrawl(store, 1)
    const claimed = await claimOne(store, await registerWorker(store))

    assertAllOk(
      await store.fail([{ ...claimed, error: 'HTTP 503', becomes: { retryInMs: 60_000 } }]),
    )

    assert.deepEqual(await store.settle(run), [])
    assert.equal((await store.run(run))?.status, 'running')
  })

  test('of two last finishers at once one ends the run, and neither misses it', async () => {
    await using db = await engine.fresh()
    const stores = await Promise.all(Array.from({ length: 4 }, () => db.open()))
    const store = stores[0]!
    const workers = await Promise.all(stores.map((store) => registerWorker(store)))

    for (let round = 0; round < 10; round++) {
      const run = await enqueueCrawl(store, stores.length)
      const claims = await Promise.all(
        stores.map((store, n) => claimOne(store, workers[n]!, { isIdle: true })),
      )
      const settled = await Promise.all(
        stores.map(async (store, n) => {
          const last = nextCheckpoint(claims[n]!, { done: true })
          assertAllOk(n % 2 ? await store.finish([claims[n]!]) : await store.checkpoint([last]))
          return store.settle(run)
        }),
      )

      assert.deepEqual(settled.flat(), [{ run, status: 'succeeded' }], `round ${round}`)
      assert.equal((await store.run(run))?.status, 'succeeded')
    }
  })

  test('a run with work left, no claim and no living worker is interrupted; the next claim takes it up', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    const run = await enqueueCrawl(store, [
      { key: 'a', group: 'CA' },
      { key: 'b', group: 'TX' },
    ])
    assertAllOk(await store.release(await claim(store, worker, 2)))

    assert.deepEqual(await store.settle(), [], 'its worker lives')
    await store.retireWorker(worker)
    await db.advanceClock(60_000)
    const before = (await store.run(run))!.lastActivityAt
    const countersRows = () => db.raw(`SELECT * FROM ${db.table('run_counters')}`)
    const rows = await countersRows()
    assert.deepEqual(await store.settle(), [{ run, status: 'interrupted' }])
    const written = (await countersRows()).filter(
      (row) => !rows.some((old) => isDeepStrictEqual(old, row)),
    )
    assert.equal(written.length, 1)
    assert.deepEqual(await store.settle(), [])
    assert.equal((await store.liveRun('shop'))?.id, run, 'an interrupted run is live')
    assert.equal((await store.run(run))!.lastActivityAt > before, true, 'it is its last activity')

    await claimOne(store, await registerWorker(store))
    const resumed = await store.run(run)
    assert.equal(resumed?.status, 'running')
    assert.equal(resumed?.resumes, 1)
  })

  test('a run that is not planned to its end is interrupted, not ended, when its last worker leaves', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    const run = await enqueueCrawl(store, 2, { planned: false })
    assertAllOk(await store.finish(await claim(store, worker, 2)))

    await store.retireWorker(worker)

    assert.deepEqual(await store.settle(), [{ run, status: 'interrupted' }])
  })

  test('a worker that has been silent for a lease does not keep a run running', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    const run = await enqueueCrawl(store, 1)
    assertAllOk(await store.release([await claimOne(store, worker)]))

    await db.advanceClock(14_000)
    assert.deepEqual(await store.settle(), [])
    await db.advanceClock(2_000)

    assert.deepEqual(await store.settle(), [{ run, status: 'interrupted' }])
  })

  test('a run is not interrupted while a claim in it is held, by a live worker or a dead one', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    await enqueueCrawl(store, 2)
    await claimOne(store, worker)
    await store.retireWorker(worker)
    await db.advanceClock(60_000)

    assert.deepEqual(await store.settle(), [])
  })

  test('a run without a claim stays queued', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await enqueueCrawl(store, 1)

    assert.deepEqual(await store.settle(), [])

    assert.equal((await store.run(run))?.status, 'queued')
    assert.equal((await store.run(run))?.startedAt, null)
  })

  test('a run with one target that was released is interrupted, also while other workers live', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    const claimed = await beginOne(store, worker)
    unwrap((await store.release([claimed]))[0]!)

    assert.deepEqual(await store.settle(), [{ run: claimed.run, status: 'interrupted' }])
    assert.equal((await store.run(claimed.run))?.owner, null)
    const again = await beginOne(store, worker)

    assert.equal(again.run, claimed.run)
    assert.equal((await store.run(claimed.run))?.status, 'running')
    assert.equal((await store.run(claimed.run))?.resumes, 1)
  })

  test('settling one run leaves the others alone', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const one = await enqueueCrawl(store, 0, { source: 'one' })
    const two = await enqueueCrawl(store, 0, { source: 'two' })

    assert.deepEqual(await store.settle(one), [{ run: one, status: 'succeeded' }])
    assert.equal((await store.run(two))?.status, 'queued')
    assert.deepEqual(await store.settle(), [{ run: two, status: 'succeeded' }])
  })
}
