import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UsageError } from '../../model/errors.ts'
import {
  assertAllOk,
  listTargets,
  recoverWorker,
  claim,
  claimOne,
  registerWorker,
  savePage,
  makeTargets,
  enqueueCrawl,
  getTarget,
} from '../../../testing/fixtures.ts'
import { assertCountersConsistent } from '../../../testing/assert-counters.ts'
import type { Engine } from '../../../testing/test-database.ts'

export function planningTests(engine: Engine): void {
  test('the same key is the same target, in one batch and in the next', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await enqueueCrawl(store, [], { planned: false })

    assert.equal(await store.plan(run, [{ key: 'a' }, { key: 'b' }, { key: 'a' }]), 2)
    assert.equal(await store.plan(run, [{ key: 'b' }, { key: 'c' }]), 1)
    assert.equal(await store.plan(run, []), 0)

    const keys = (await listTargets(store, run)).map((target) => target.key)
    assert.deepEqual(keys.sort(), ['a', 'b', 'c'])
    await assertCountersConsistent(store, run)
  })

  test('a target that is planned again stays as it is', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await enqueueCrawl(store, [{ key: 'a', group: 'CA', url: 'https://a.example/' }])
    const claimed = await claimOne(store, await registerWorker(store))

    await store.plan(run, [{ key: 'a', group: 'TX', url: 'https://b.example/' }])

    const [target] = await listTargets(store, run)
    assert.equal(target?.status, 'in_progress')
    assert.equal(target?.group, 'CA')
    assert.equal(target?.url, 'https://a.example/')
    assert.equal(target?.claimId, claimed.claimId)
    await assertCountersConsistent(store, run)
  })

  test('planning killed in the middle and asked again misses no target and doubles none', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [first, second] = [await registerWorker(store), await registerWorker(store)]
    const run = await enqueueCrawl(store, [], { planned: false })
    assert.equal(await store.claimPlanning(run, first), true)
    await store.plan(run, makeTargets(40))
    // Others are at work already, and the planner dies.
    const claims = await claim(store, second, 40)
    assertAllOk(await store.finish(claims))
    assert.deepEqual(await store.settle(run), [], 'without all its targets a run cannot end')
    await store.retireWorker(first)

    assert.equal(await store.claimPlanning(run, second), true)
    assert.equal(await store.plan(run, makeTargets(100)), 60)
    await store.finishPlanning(run)

    const targets = await listTargets(store, run)
    assert.equal(new Set(targets.map((target) => target.key)).size, 100)
    assert.equal(targets.length, 100)
    assert.equal(targets.filter((target) => target.status === 'done').length, 40)
    await assertCountersConsistent(store, run)
  })

  test('many stores that plan the same targets at once make each of them once', async () => {
    await using db = await engine.fresh()
    const stores = await Promise.all(Array.from({ length: 6 }, () => db.open()))
    const run = await enqueueCrawl(stores[0]!, [], { planned: false })

    const added = await Promise.all(
      stores.map((store, n) =>
        store.plan(run, n % 2 ? makeTargets(60) : makeTargets(60).reverse()),
      ),
    )

    assert.equal(
      added.reduce((sum, n) => sum + n),
      60,
    )
    await assertCountersConsistent(stores[0]!, run)
  })

  test('one worker at a time plans; a repeated call keeps the role', async () => {
    await using db = await engine.fresh()
    const stores = await Promise.all(Array.from({ length: 8 }, () => db.open()))
    const store = stores[0]!
    const workers = await Promise.all(stores.map((store) => registerWorker(store)))
    const run = await enqueueCrawl(store, [], { planned: false })

    const turns = await Promise.all(stores.map((store, n) => store.claimPlanning(run, workers[n]!)))

    assert.equal(turns.filter(Boolean).length, 1)
    const planner = workers[turns.indexOf(true)]!
    assert.equal(await store.claimPlanning(run, planner), true)
    await store.finishPlanning(run)
    assert.equal(await store.claimPlanning(run, planner), false, 'nothing is left to plan')
    assert.ok((await store.run(run))?.plannedAt)
  })

  test('targets without a usable key are refused', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await enqueueCrawl(store, [], { planned: false })
    const refused = { name: 'UsageError' }

    await assert.rejects(async () => store.plan(run, [{ key: 'a' }, { key: '' }]), refused)
    await assert.rejects(async () => store.plan(run, [{ key: 'x'.repeat(1_001) }]), refused)
    await assert.rejects(async () => store.plan(run, [{} as { key: string }]), refused)

    assert.equal((await listTargets(store, run)).length, 0)
  })

  test('a run that has ended takes no more targets', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await enqueueCrawl(store, 0)
    await store.settle(run)

    await assert.rejects(store.plan(run, [{ key: 'late' }]), UsageError)

    await assertCountersConsistent(store, run)
  })

  test('what is put in front is claimed before all that waits, the last one first', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    const run = await enqueueCrawl(store, ['x', 'retried', 'released', 'a', 'b'])
    const front = (...keys: string[]) => keys.map((key) => ({ key, forefront: true }))
    const [, retried, released] = await claim(store, worker, 3)
    assertAllOk(await store.fail([{ ...retried!, error: 'again', becomes: { retryInMs: 0 } }]))
    assertAllOk(await store.release([released!]))

    await store.plan(run, front('p', 'q'))
    await store.plan(run, [{ key: 'c' }, ...front('r', 'p', 's')])
    await db.advanceClock(1)

    const order = [...(await claim(store, worker, 3)), ...(await claim(store, worker, 9))]
    assert.deepEqual(
      order.map(({ key }) => key),
      ['s', 'r', 'q', 'p', 'released', 'retried', 'a', 'b', 'c'],
    )
    await assertCountersConsistent(store, run)
  })

  test('what failed goes before all that waits if it is to, with the cursor it is given, and no page is counted', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    const run = await enqueueCrawl(store, [
      { key: 'a', cursor: 1 },
      { key: 'b', cursor: 1 },
      'c',
      'd',
    ])
    const [a, b, c] = await claim(store, worker, 3)
    const again = { error: 'again', becomes: { retryInMs: 0, forefront: true } }

    assertAllOk(await store.fail([{ ...a!, ...again, nextCursor: { tries: [1, 'ü'] } }]))
    assertAllOk(await store.fail([{ ...b!, ...again }]))
    assertAllOk(
      await store.fail([{ ...c!, error: 'no', becomes: 'failed', nextCursor: 'the end' }]),
    )
    await store.plan(run, [{ key: 'e', forefront: true }])

    const order = await claim(store, worker, 9)
    assert.deepEqual(
      order.map(({ key, cursor, page, seq }) => [key, cursor, page, seq]),
      [
        ['e', null, 0, 0],
        ['b', 1, 0, 0],
        ['a', { tries: [1, 'ü'] }, 0, 0],
        ['d', null, 0, 0],
      ],
    )
    const { cursor, status } = await getTarget(store, c!.target)
    assert.deepEqual([cursor, status], ['the end', 'failed'])
    await assertCountersConsistent(store, run)
  })

  test('a target enqueued in front keeps its cursor and its place after a release or a crash', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [worker, dead] = [await registerWorker(store), await registerWorker(store)]
    const cursor = { url: 'https://a.example/', n: [1, null, 'ü'] }
    const run = await enqueueCrawl(store, [
      { key: 'a' },
      { key: 'b', forefront: true, cursor },
      { key: 'c', forefront: true, cursor: 'text' },
    ])
    const [c, b] = await claim(store, worker, 2)
    assert.deepEqual([c!.cursor, b!.cursor], ['text', cursor])

    assertAllOk(await store.release([b!, c!]))
    const [again] = await claim(store, dead, 1)
    assert.deepEqual([again!.key, again!.cursor], ['c', 'text'])
    await recoverWorker(store, dead)
    const alone = await claimOne(store, worker, { isIdle: true })
    assert.deepEqual([alone.key, alone.cursor, alone.seq], ['c', 'text', 0])
    await store.plan(run, [{ key: 'd', forefront: true }])
    assertAllOk(await store.release([alone]))

    const order = await claim(store, worker, 9)
    assert.deepEqual(
      order.map(({ key }) => key),
      ['d', 'b', 'a'],
    )
    await savePage(store, order[1]!, { done: true })
    assert.deepEqual((await getTarget(store, b!.target)).cursor, cursor)
    await assertCountersConsistent(store, run)
  })

  test('a target released to the front is claimed before what was put there earlier', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    const run = await enqueueCrawl(store, ['a', { key: 'b', forefront: true }, 'c'])
    const [b, a, c] = await claim(store, worker, 3)

    assertAllOk(await store.release([{ ...c!, forefront: true }, b!, { ...a!, forefront: true }]))

    const order = await claim(store, worker, 9)
    assert.deepEqual(
      order.map(({ key }) => key),
      ['a', 'c', 'b'],
    )
    await assertCountersConsistent(store, run)
  })

  test('a target planned as done is counted and never claimed', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    const run = await enqueueCrawl(store, ['a', { key: 'b', done: true }])

    const claimed = await claim(store, worker, 9)
    assert.deepEqual(
      claimed.map(({ key }) => key),
      ['a'],
    )
    const { done, in_progress } = (await store.run(run))!.counts.targets
    assert.deepEqual([done, in_progress], [1, 1])
    const [b] = await store.targetsByKey(run, ['b'])
    assert.notEqual(b!.finishedAt, null)
    await savePage(store, claimed[0]!, { done: true })
    await store.settle(run)
    assert.equal((await store.run(run))!.status, 'succeeded')
    await assertCountersConsistent(store, run)
  })

  test('a cursor that is no JSON is refused', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await enqueueCrawl(store, [], { planned: false })
    for (const cursor of [() => 1, { n: 1n }]) {
      await assert.rejects(async () => store.plan(run, [{ key: 'a', cursor }]), /no JSON/)
    }
    assert.equal((await listTargets(store, run)).length, 0)
  })

  test('targets are found by their keys, in their run alone', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const odd = ["o'clock", '%', '日本', '{"a"}', 'NULL']
    const run = await enqueueCrawl(store, ['a', 'b', ...odd])
    await enqueueCrawl(store, ['a', 'c'], { source: 'other' })

    const found = await store.targetsByKey(run, ['a', 'c', ...odd, 'a\0', '\ud800', '', 'a'])

    assert.deepEqual(found.map(({ key }) => key).sort(), ['a', ...odd].sort())
    assert.ok(found.every((target) => target.run === run && target.status === 'planned'))
    assert.deepEqual(await store.targetsByKey(run, []), [])
  })
}
