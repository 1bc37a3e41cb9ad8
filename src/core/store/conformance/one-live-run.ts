import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AlreadyRunningError } from '../../model/errors.ts'
import { newId } from '../../model/id.ts'
import { DEFAULT_POLICY } from '../../model/policy.ts'
import {
  assertAllOk,
  listTargets,
  begin,
  beginOne,
  recoverWorker,
  registerWorker,
  unwrap,
  savePage,
  SOURCE,
  enqueueCrawl,
  getTarget,
} from '../../../testing/fixtures.ts'
import { assertCountersConsistent } from '../../../testing/assert-counters.ts'
import { startStoreProcesses } from '../../../testing/store-process.ts'
import type { Engine } from '../../../testing/test-database.ts'
import type { BeginResult, BeginRequest, NewRun } from '../store.ts'

export function oneLiveRunTests(engine: Engine): void {
  test('P10 one live run per source: of fifty begins at once, in many processes, one wins', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    // It does not beat here, and fifty at once may take long.
    const worker = await registerWorker(store, { leaseMs: 600_000 })
    await using processes = await startStoreProcesses(db.url, 4, 5)
    const here = await Promise.all(Array.from({ length: 10 }, () => db.open()))

    const begun = await Promise.all([
      ...here.map((store) => store.begin(beginRequest(worker))),
      ...processes.all.flatMap((other) =>
        Array.from({ length: 10 }, (_, n) => other.call(n % 5, 'begin', beginRequest(worker))),
      ),
    ])

    assert.equal(begun.length, 50)
    const [winner, ...more] = begun.filter((answer) => answer.claimed !== null)
    assert.ok(winner?.claimed)
    assert.equal(more.length, 0)
    for (const answer of begun) {
      assert.equal(answer.claimed ? answer.claimed.run : blockingRun(answer), winner.claimed.run)
    }
    const { items: runs } = await store.runs({ source: SOURCE, limit: 100 })
    assert.equal(runs.length, 1)
    assert.equal((await listTargets(store, winner.claimed.run)).length, 1)
  })

  test('P10 one live run per source: of many enqueues at once one wins, the others are refused by type', async () => {
    await using db = await engine.fresh()
    const stores = await Promise.all(Array.from({ length: 12 }, () => db.open()))

    const outcomes = await Promise.allSettled(stores.map((store) => store.enqueue(newRun())))

    const refused = outcomes.filter((outcome) => outcome.status === 'rejected')
    assert.equal(refused.length, 11)
    for (const { reason } of refused)
      assert.ok(reason instanceof AlreadyRunningError, String(reason))
    assert.equal((await stores[0]!.runs({ limit: 100 })).items.length, 1)
  })

  test('P10 one live run per source: the database itself refuses a second one, whatever a program forgets', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    const first = await beginOne(store, worker)
    assertAllOk(await store.fail([{ ...first, error: 'x', becomes: 'failed' }]))
    await store.settle()
    await beginOne(store, worker)

    await assert.rejects(
      db.raw(`UPDATE ${db.table('run')} SET status = 'queued' WHERE id = '${first.run}'`),
      /unique/i,
    )
  })

  test('P10 the guard heals: when its holder is taken for dead, one of many begins takes the run up', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [dead, next] = [await registerWorker(store), await registerWorker(store)]
    const first = await savePage(store, await beginOne(store, dead), {
      items: [{ key: 'a', data: 1 }],
    })
    assert.equal((await begin(store, next)).claimed, null)

    await recoverWorker(store, dead)
    await store.settle()
    const stores = await Promise.all(Array.from({ length: 10 }, () => db.open()))
    const begun = await Promise.all(stores.map((store) => begin(store, next)))

    const winners = begun.filter((answer) => answer.claimed !== null)
    assert.equal(winners.length, 1)
    const { claimed, resumed } = winners[0] as BeginResult & { claimed: object; resumed: boolean }
    assert.equal(claimed.run, first.run)
    assert.equal(claimed.page, 1)
    assert.equal(claimed.epoch, first.epoch + 1)
    assert.equal(resumed, true)
    assert.equal((await store.run(first.run))?.resumes, 1)
  })

  test('a live run refuses the next one and names itself', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await enqueueCrawl(store, 1)

    await assert.rejects(store.enqueue(newRun()), (error) => {
      assert.ok(error instanceof AlreadyRunningError)
      assert.equal(error.data.run, run)
      assert.equal(error.data.source, SOURCE)
      return true
    })
    await store.enqueue(newRun('another source'))
  })

  test('enqueue asked again is the same run', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = newRun()

    await store.enqueue(run)
    await store.enqueue(run)

    const live = await store.liveRun(SOURCE)
    assert.equal(live?.id, run.id)
    assert.equal(live?.status, 'queued')
  })

  test('begin makes the run and the target it was given ids for, and claims it', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    const request = beginRequest(worker)

    const begun = await store.begin(request)

    assert.ok(begun.claimed)
    assert.equal(begun.resumed, false)
    assert.equal(begun.claimed.run, request.run)
    assert.equal(begun.claimed.target, request.target)
    assert.equal(begun.claimed.claimId, request.claimId)
    assert.equal(begun.claimed.worker, worker)
    const run = await store.run(request.run)
    assert.equal(run?.status, 'running')
    assert.equal(run?.kind, 'single')
    assert.equal(run?.owner, worker)
    assert.ok(run?.plannedAt && run.startedAt)
  })

  test('a repeated begin returns the same claim, and creates nothing new', async () => {
    await using db = await engine.fresh()
    const [one, other] = [await db.open(), await db.open()]
    const worker = await registerWorker(one)
    const request = beginRequest(worker)

    const first = await one.begin(request)
    const again = await other.begin(request)

    assert.deepEqual(again, first)
    assert.equal((await getTarget(one, request.target)).epoch, 1)
  })

  test('a repeated begin of a resumed run still reports it as resumed', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [dead, next] = [await registerWorker(store), await registerWorker(store)]
    await beginOne(store, dead)
    await recoverWorker(store, dead)
    const request = beginRequest(next)

    const first = await store.begin(request)
    const again = await store.begin(request)

    assert.equal(first.claimed && first.resumed, true)
    assert.deepEqual(again, first)
  })

  test('P12 begin and enqueue asked twice at the same moment make one run', async () => {
    await using db = await engine.fresh()
    const stores = await Promise.all(Array.from({ length: 4 }, () => db.open()))
    const store = stores[0]!
    const worker = await registerWorker(store)

    for (let round = 1; round <= 8; round++) {
      const request = { ...beginRequest(worker), source: `begun ${round}` }
      const begun = await Promise.all(stores.map((store) => store.begin(request)))
      for (const answer of begun) assert.deepEqual(answer, begun[0], `round ${round}`)
      assert.equal(begun[0]?.claimed?.epoch, 1)

      const run = newRun(`queued ${round}`)
      await Promise.all(stores.map((store) => store.enqueue(run)))
      assert.equal((await store.liveRun(run.source))?.id, run.id)
    }
  })

  test('begin does not touch a live crawl of the source', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await enqueueCrawl(store, 2)

    const begun = await begin(store, await registerWorker(store))

    assert.deepEqual(begun, { claimed: null, blockingRun: run })
    assert.equal((await store.run(run))?.counts.targets.planned, 2)
  })

  test('begin takes up a run that was queued for the source', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const { id: run, ...queued } = newRun()
    await store.enqueue({ id: run, ...queued, kind: 'single' })
    // Its one target came with it: a process that dies here leaves nothing half done.
    assert.equal((await store.run(run))?.counts.targets.planned, 1)
    assert.ok((await store.run(run))?.plannedAt)

    const begun = await begin(store, await registerWorker(store))

    assert.equal(begun.claimed?.run, run)
    assert.equal(begun.claimed?.key, SOURCE)
    assert.equal(begun.claimed && begun.resumed, false)
    await assertCountersConsistent(store, run)
  })

  test('when a run has ended the source is free again', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    const first = await beginOne(store, worker)
    assertAllOk(await store.finish([first]))
    await store.settle(first.run)

    const second = await beginOne(store, worker)

    assert.notEqual(second.run, first.run)
    assert.equal(second.epoch, 1)
    assert.equal((await store.liveRun(SOURCE))?.id, second.run)
  })

  test('P9 a run that was taken can be begun again by name; no other is started or taken in its place', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [worker, other] = [await registerWorker(store), await registerWorker(store)]
    const first = await beginOne(store, worker)
    await recoverWorker(store, worker)
    const only = first.run

    const again = await store.begin({ ...beginRequest(worker), onlyRun: only })
    assert.deepEqual([again.claimed?.run, again.claimed?.epoch], [only, 2])
    await recoverWorker(store, worker)
    const theirs = await beginOne(store, other)
    assert.equal(blockingRun(await store.begin({ ...beginRequest(worker), onlyRun: only })), only)
    unwrap((await store.finish([theirs]))[0]!)
    await store.settle()
    assert.equal((await store.begin({ ...beginRequest(worker), onlyRun: only })).claimed, null)
    assert.equal(await store.liveRun(SOURCE), null, 'none is started')
  })

  test('a run with one target has its progress', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const claim = await beginOne(store, await registerWorker(store))
    assert.equal((await store.run(claim.run))?.progress, null)

    unwrap(await store.reportProgress(claim, { done: 3, total: 8 }))

    assert.deepEqual((await store.run(claim.run))?.progress, { done: 3, total: 8 })
  })
}

function beginRequest(worker: string): BeginRequest {
  return {
    source: SOURCE,
    worker,
    policy: DEFAULT_POLICY,
    run: newId(),
    target: newId(),
    claimId: newId(),
  }
}

function newRun(source = SOURCE): NewRun {
  return { id: newId(), source, kind: 'crawl', policy: DEFAULT_POLICY }
}

function blockingRun(begun: BeginResult): string | null {
  return 'blockingRun' in begun ? begun.blockingRun : null
}
