import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UsageError } from '../../model/errors.ts'
import {
  allOk,
  allTargets,
  claim,
  claimOne,
  hire,
  someTargets,
  startCrawl,
} from '../../testing/cast.ts'
import { assertBooksBalance } from '../../testing/assert-books.ts'
import type { Engine } from '../../testing/test-database.ts'

export function planningTests(engine: Engine): void {
  test('the same key is the same target, in one batch and in the next', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await startCrawl(store, [], { planned: false })

    assert.equal(await store.plan(run, [{ key: 'a' }, { key: 'b' }, { key: 'a' }]), 2)
    assert.equal(await store.plan(run, [{ key: 'b' }, { key: 'c' }]), 1)
    assert.equal(await store.plan(run, []), 0)

    const keys = (await allTargets(store, run)).map((target) => target.key)
    assert.deepEqual(keys.sort(), ['a', 'b', 'c'])
    await assertBooksBalance(store, run)
  })

  test('a target that is planned again stays as it is', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await startCrawl(store, [{ key: 'a', group: 'CA', url: 'https://a.example/' }])
    const claimed = await claimOne(store, await hire(store))

    await store.plan(run, [{ key: 'a', group: 'TX', url: 'https://b.example/' }])

    const [target] = await allTargets(store, run)
    assert.equal(target?.status, 'in_progress')
    assert.equal(target?.group, 'CA')
    assert.equal(target?.url, 'https://a.example/')
    assert.equal(target?.claimId, claimed.claimId)
    await assertBooksBalance(store, run)
  })

  test('planning killed in the middle and asked again misses no target and doubles none', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [first, second] = [await hire(store), await hire(store)]
    const run = await startCrawl(store, [], { planned: false })
    assert.equal(await store.takePlanning(run, first), true)
    await store.plan(run, someTargets(40))
    // Others are at work already, and the planner dies.
    const claims = await claim(store, second, 40)
    allOk(await store.finish(claims))
    assert.deepEqual(await store.settle(run), [], 'without all its targets a run cannot end')
    await store.retire(first)

    assert.equal(await store.takePlanning(run, second), true)
    assert.equal(await store.plan(run, someTargets(100)), 60)
    await store.finishPlanning(run)

    const targets = await allTargets(store, run)
    assert.equal(new Set(targets.map((target) => target.key)).size, 100)
    assert.equal(targets.length, 100)
    assert.equal(targets.filter((target) => target.status === 'done').length, 40)
    await assertBooksBalance(store, run)
  })

  test('many stores that plan the same targets at once make each of them once', async () => {
    await using db = await engine.fresh()
    const stores = await Promise.all(Array.from({ length: 6 }, () => db.open()))
    const run = await startCrawl(stores[0]!, [], { planned: false })

    const added = await Promise.all(
      stores.map((store, n) =>
        store.plan(run, n % 2 ? someTargets(60) : someTargets(60).reverse()),
      ),
    )

    assert.equal(
      added.reduce((sum, n) => sum + n),
      60,
    )
    await assertBooksBalance(stores[0]!, run)
  })

  test('one worker at a time plans; who asks again still does', async () => {
    await using db = await engine.fresh()
    const stores = await Promise.all(Array.from({ length: 8 }, () => db.open()))
    const store = stores[0]!
    const workers = await Promise.all(stores.map((store) => hire(store)))
    const run = await startCrawl(store, [], { planned: false })

    const turns = await Promise.all(stores.map((store, n) => store.takePlanning(run, workers[n]!)))

    assert.equal(turns.filter(Boolean).length, 1)
    const planner = workers[turns.indexOf(true)]!
    assert.equal(await store.takePlanning(run, planner), true)
    await store.finishPlanning(run)
    assert.equal(await store.takePlanning(run, planner), false, 'nothing is left to plan')
    assert.ok((await store.run(run))?.plannedAt)
  })

  test('targets without a usable key are refused', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await startCrawl(store, [], { planned: false })
    const refused = { name: 'UsageError' }

    await assert.rejects(async () => store.plan(run, [{ key: 'a' }, { key: '' }]), refused)
    await assert.rejects(async () => store.plan(run, [{ key: 'x'.repeat(1_001) }]), refused)
    await assert.rejects(async () => store.plan(run, [{} as { key: string }]), refused)

    assert.equal((await allTargets(store, run)).length, 0)
  })

  test('a run that has ended takes no more targets', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await startCrawl(store, 0)
    await store.settle(run)

    await assert.rejects(store.plan(run, [{ key: 'late' }]), UsageError)

    await assertBooksBalance(store, run)
  })
}
