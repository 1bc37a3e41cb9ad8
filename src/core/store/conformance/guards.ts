import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Guard } from '../../model/source-lock.ts'
import { newId, type WorkerId } from '../../model/id.ts'
import { DEFAULT_POLICY } from '../../model/policy.ts'
import {
  begin,
  beginOne,
  claimOne,
  hire,
  ok,
  SOURCE,
  startCrawl,
} from '../../../testing/fixtures.ts'
import { otherProcesses } from '../../../testing/other-process.ts'
import type { Engine } from '../../../testing/test-database.ts'
import type { Begun, BeginRequest, HoldSource, Store } from '../store.ts'

export function guardTests(engine: Engine): void {
  test('P10 one guard per source: of forty who ask at once, in many processes, one holds it', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    await using processes = await otherProcesses(db.url, 3, 4)
    const workers = await Promise.all(Array.from({ length: 40 }, () => hire(store)))

    const answers = await Promise.all(
      workers.map((worker, n) => {
        const other = processes.all[n % 4]
        return other ? other.call(n % 4, 'holdSource', asked(worker)) : hold(store, worker)
      }),
    )

    const holder = answers[0]!.worker
    assert.ok(holder !== null && workers.includes(holder))
    for (const answer of answers) assert.deepEqual(answer, answers[0])
    assert.deepEqual(await store.guard(SOURCE), answers[0])
  })

  test('P10 who comes into being while others ask holds the guard like everybody else', async () => {
    await using db = await engine.fresh()
    const stores = await Promise.all(Array.from({ length: 6 }, () => db.open()))
    for (let round = 1; round <= 10; round++) {
      const source = `source ${round}`

      const answers = await Promise.all(
        stores.map(async (store) => hold(store, await hire(store), { source })),
      )

      for (const answer of answers) assert.equal(answer.worker, answers[0]!.worker, source)
    }
  })

  test('the first guard of a source is as asked for, and others see it', async () => {
    await using db = await engine.fresh()
    const [store, theirs] = [await db.open(), await db.open()]
    const worker = await hire(store)
    assert.equal(await store.guard(SOURCE), null)
    assert.deepEqual(await store.guards(), [])

    const guard = await hold(store, worker, { killTimeoutMs: 45_000, cookie: 'c0' })

    const { since, ...rest } = guard
    assert.ok(Math.abs(since! - (await store.now())) < 5_000)
    assert.deepEqual(rest, {
      source: SOURCE,
      worker,
      killTimeoutMs: 45_000,
      endingSince: null,
      cookie: 'c0',
      gaveUp: null,
    })
    await hold(theirs, worker, { source: 'another' })
    assert.deepEqual(await theirs.guard(SOURCE), guard)
    assert.deepEqual(
      (await theirs.guards()).map(({ source }) => source),
      ['another', SOURCE],
    )
  })

  test('P12 the holder who asks again gets the same answer', async () => {
    await using db = await engine.fresh()
    const [store, again] = [await db.open(), await db.open()]
    const worker = await hire(store)
    await hold(store, worker)
    await db.later(5_000)
    const before = await store.guard(SOURCE)

    assert.deepEqual(await hold(again, worker), before)
    const instead = { worker, beats: 0 }
    assert.deepEqual(await hold(again, worker, { instead }), before)
    assert.deepEqual(await again.guard(SOURCE), before)
  })

  test('a guard that somebody holds who has not ended is answered as it is', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [holder, other] = [await hire(store), await hire(store)]
    const guard = await hold(store, holder)

    assert.deepEqual(await hold(store, other, { killTimeoutMs: 1, cookie: 'other' }), guard)

    await db.later(3_600_000)
    const later = await hold(store, await hire(store))
    assert.equal(later.worker, holder, 'its silence is for a judge to weigh')
  })

  test('a new holder finds nothing of the last one but the cookie', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const first = await hire(store)
    const { cookie, since } = await hold(store, first)
    await store.markEnding(SOURCE, first)
    await store.freeSource({ source: SOURCE, worker: first, gaveUp: 'five crashes in a minute' })
    await db.later(60_000)
    const second = await hire(store)

    const guard = await hold(store, second, { killTimeoutMs: 5_000 })

    const { since: now, ...rest } = guard
    assert.ok(now! > since! - 30_000)
    const held = { worker: second, killTimeoutMs: 5_000, endingSince: null, gaveUp: null }
    assert.deepEqual(rest, { source: SOURCE, cookie, ...held })
  })

  test('a worker that still holds a guard is not retired: what its command left must be ended first', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [worker, other] = [await hire(store), await hire(store)]
    await hold(store, worker)

    await store.retire(worker)

    assert.equal((await store.worker(worker))?.endedAt, null)
    assert.equal((await hold(store, other)).worker, worker)
    assert.equal(await store.freeSource({ source: SOURCE, worker }), true)
    await store.retire(worker)
    assert.notEqual((await store.worker(worker))?.endedAt, null)
    assert.equal((await hold(store, other)).worker, other)
  })

  test("a guard whose holder has ended, or is not known any more, is anybody's", async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [ended, unknown, taker] = [await hire(store), await hire(store), await hire(store)]
    await hold(store, ended)
    await hold(store, unknown, { source: 'unknown' })
    const worker = db.table('worker')
    await db.raw(`UPDATE ${worker} SET ended_at = started_at WHERE id = '${ended}'`)
    await db.raw(`DELETE FROM ${worker} WHERE id = '${unknown}'`)

    assert.equal((await hold(store, taker)).worker, taker)
    assert.equal((await hold(store, taker, { source: 'unknown' })).worker, taker)
  })

  test('P2 a holder is replaced only if it still is the one that was judged and has not beaten since', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [holder, next, third] = [await hire(store), await hire(store), await hire(store)]
    await hold(store, holder)
    const { beats } = (await store.worker(holder))!
    await store.beat({ worker: holder, claimIds: [], loopLagMs: 0 })

    const late = await hold(store, next, { instead: { worker: holder, beats } })
    const other = await hold(store, next, { instead: { worker: third, beats: 0 } })
    assert.deepEqual([late.worker, other.worker], [holder, holder])
    const current = { worker: holder, beats: beats + 1 }
    assert.equal((await hold(store, next, { instead: current })).worker, next)

    assert.equal((await hold(store, third, { instead: current })).worker, next)
  })

  test('P2 of many who would replace the same holder one does', async () => {
    await using db = await engine.fresh()
    const stores = await Promise.all(Array.from({ length: 8 }, () => db.open()))
    const workers = await Promise.all(stores.map((store) => hire(store)))
    const dead = await hire(stores[0]!)
    await hold(stores[0]!, dead)
    const instead = { worker: dead, beats: 0 }

    const answers = await Promise.all(
      stores.map((store, n) => hold(store, workers[n]!, { instead })),
    )

    const holder = answers[0]!.worker!
    assert.ok(workers.includes(holder))
    for (const answer of answers) assert.equal(answer.worker, holder)
  })

  test('only the holder can say that it is ending, and it began when it said so first', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [worker, other] = [await hire(store), await hire(store)]
    await hold(store, worker)

    await store.markEnding(SOURCE, other)
    assert.equal((await store.guard(SOURCE))?.endingSince, null)
    await store.markEnding(SOURCE, worker)
    await db.later(5_000)
    const before = await store.guard(SOURCE)
    await store.markEnding(SOURCE, worker)

    assert.ok(before?.endingSince)
    assert.deepEqual(await store.guard(SOURCE), before)
    assert.deepEqual(await hold(store, other), before)
  })

  test("only the holder's guard is freed, and only while its beats are those that were seen", async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [worker, other] = [await hire(store), await hire(store)]
    const guard = await hold(store, worker)
    await store.beat({ worker, claimIds: [], loopLagMs: 0 })
    const free = { source: SOURCE, worker }

    assert.equal(await store.freeSource({ ...free, worker: other }), false)
    assert.equal(await store.freeSource({ ...free, source: 'no such source' }), false)
    assert.equal(await store.freeSource({ ...free, beats: 0 }), false)
    assert.deepEqual(await store.guard(SOURCE), guard)
    assert.equal(await store.freeSource({ ...free, beats: 1 }), true)
    assert.equal((await store.guard(SOURCE))?.worker, null)
    assert.equal(await store.freeSource(free), false)

    await hold(store, other)
    assert.equal(await store.freeSource({ ...free, worker: other }), true)
  })

  test('a holder that gave up says why and when', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await hire(store)
    await hold(store, worker)

    await store.freeSource({ source: SOURCE, worker, gaveUp: 'it ended five times in a minute' })

    const { gaveUp } = (await store.guard(SOURCE))!
    assert.equal(gaveUp?.because, 'it ended five times in a minute')
    assert.ok(Math.abs(gaveUp.at - (await store.now())) < 5_000)
  })

  test('P10 begin is refused with the guard that somebody else holds, and changes nothing', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [holder, other] = [await hire(store), await hire(store)]
    const dead = await beginOne(store, other)
    ok((await store.release([dead]))[0]!)
    const guard = await hold(store, holder)
    const before = await store.run(dead.run)
    const deed = { actor: 'the tests', because: 'dead', evidence: null }
    const clean = { run: dead.run, to: 'abandoned', action: 'abandon', only: {}, ...deed } as const

    assert.deepEqual(await store.begin({ ...request(other), clean }), { claimed: null, guard })

    assert.deepEqual(await store.run(dead.run), before)
    assert.deepEqual(await store.audit({ limit: 10 }), [])
    assert.deepEqual(await begin(store, other), { claimed: null, guard })
    const elsewhere = await begin(store, other, { source: 'another' })
    assert.ok(elsewhere.claimed, 'another source has another guard')
  })

  test('P10 of many who begin while one holds the guard, only that one gets the run', async () => {
    await using db = await engine.fresh()
    const stores = await Promise.all(Array.from({ length: 6 }, () => db.open()))
    const workers = await Promise.all(stores.map((store) => hire(store)))
    const guard = await hold(stores[0]!, workers[3]!)

    const begun = await Promise.all(stores.map((store, n) => begin(store, workers[n]!)))

    assert.equal(begun[3]!.claimed?.worker, workers[3])
    for (const answer of begun) if (!answer.claimed) assert.deepEqual(guardOf(answer), guard)
    assert.equal((await stores[0]!.runs({ limit: 10 })).items.length, 1)
  })

  test("a guard that is free, one's own, or of one that has ended stops nobody", async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [worker, gone] = [await hire(store), await hire(store)]
    for (const source of ['free', 'own', 'ended']) {
      await hold(store, source === 'ended' ? gone : worker, { source })
    }
    await store.freeSource({ source: 'free', worker })
    const ended = `UPDATE ${db.table('worker')} SET ended_at = started_at WHERE id = '${gone}'`
    await db.raw(ended)

    for (const source of ['free', 'own', 'ended']) {
      const claimed = await beginOne(store, source === 'own' ? worker : await hire(store), {
        source,
      })
      assert.equal(claimed.source, source)
    }
  })

  test('P12 begin asked again answers the claim that it made before the guard was taken', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [worker, holder] = [await hire(store), await hire(store)]
    const asks = request(worker)
    const first = await store.begin(asks)
    await hold(store, holder)

    assert.deepEqual(await store.begin(asks), first)
    assert.ok('guard' in (await begin(store, worker)))
  })

  test('queueing, planning and claiming do not ask for the guard', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [holder, worker] = [await hire(store), await hire(store)]
    await hold(store, holder)

    await startCrawl(store, 1)

    assert.equal((await claimOne(store, worker)).worker, worker)
  })
}

function asked(worker: WorkerId, more: Partial<HoldSource> = {}): HoldSource {
  return { source: SOURCE, worker, killTimeoutMs: 30_000, cookie: newId(), ...more }
}

function hold(store: Store, worker: WorkerId, more: Partial<HoldSource> = {}): Promise<Guard> {
  return store.holdSource(asked(worker, more))
}

function request(worker: WorkerId): BeginRequest {
  const ids = { run: newId(), target: newId(), claimId: newId() }
  return { source: SOURCE, worker, policy: DEFAULT_POLICY, ...ids }
}

function guardOf(begun: Begun): Guard | null {
  return 'guard' in begun ? begun.guard : null
}
