import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ITEM_STORE } from '../../../features/items/store/store.ts'
import { METRICS_STORE } from '../../../features/metrics/store/store.ts'
import { UsageError } from '../../model/errors.ts'
import type { RunId } from '../../model/id.ts'
import {
  itemsOf,
  listTargets,
  beginOne,
  claimOne,
  registerWorker,
  unwrap,
  savePage,
  SOURCE,
  makeItems,
  enqueueCrawl,
} from '../../../testing/fixtures.ts'
import type { Engine } from '../../../testing/test-database.ts'
import type { RunMove, Store } from '../store.ts'

const AUDIT_INFO = { actor: 'alice', because: 'it had to be' }

function move(run: RunId, given: Partial<RunMove> = {}): RunMove {
  return {
    run,
    to: 'cancelled',
    action: 'cancel',
    evidence: null,
    expected: {},
    ...AUDIT_INFO,
    ...given,
  }
}

export function auditTests(engine: Engine): void {
  test('P15 deleting takes a run with its targets, items only when asked for, and stays in the trail', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    const first = await enqueueCrawl(store, ['a'])
    await savePage(store, await claimOne(store, worker), { items: makeItems(0, 2), done: true })
    await assert.rejects(
      store.deleteRun({ run: first, withItems: false, ...AUDIT_INFO }),
      (error) => error instanceof UsageError && /running: only what has ended/.test(error.message),
    )
    await store.settle()

    assert.deepEqual(await store.deleteRun({ run: first, withItems: false, ...AUDIT_INFO }), {
      targets: 1,
      items: 0,
    })
    assert.equal(await store.run(first), null)
    assert.deepEqual(await store.countsByGroup(first), [])
    assert.equal((await itemsOf(store)).length, 2)
    const [entry] = await store.audit({ run: first, limit: 5 })
    assert.deepEqual(
      [entry!.action, entry!.before],
      ['delete', { status: 'succeeded', targets: 1, items: 0 }],
    )

    const second = await enqueueCrawl(store, ['b'])
    await savePage(store, await claimOne(store, worker), {
      items: makeItems(1, 2, { new: true }),
      done: true,
    })
    await store.settle()
    const itemStore = await store.extend(ITEM_STORE)
    assert.deepEqual(
      new Map((await itemStore.itemsByRun(SOURCE)).map(({ run, items }) => [run, items])),
      new Map([
        [first, 1],
        [second, 2],
      ]),
    )
    assert.deepEqual(await store.deleteRun({ run: second, withItems: true, ...AUDIT_INFO }), {
      targets: 1,
      items: 2,
    })
    assert.deepEqual(
      (await itemsOf(store)).map(({ key }) => key),
      ['item-0'],
    )
  })

  test('live runs come all at once, with the one target of those that have only one', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    const crawl = await enqueueCrawl(store, 2)
    const held = await beginOne(store, worker, { source: 'held' })
    await savePage(store, held)
    const ended = await beginOne(store, worker, { source: 'ended' })
    unwrap((await store.finish([ended]))[0]!)
    await store.settle()

    const live = await store.liveRuns()

    assert.deepEqual(
      live.map(({ run }) => run.id),
      [held.run, crawl],
    )
    const [first, second] = live
    assert.equal(second!.target, null)
    assert.deepEqual(
      [first!.target!.page, first!.target!.worker, first!.target!.crashesAlone],
      [1, worker, 0],
    )
    assert.equal(first!.run.owner, worker)
    assert.deepEqual(
      live.map(({ run }) => run),
      [await store.run(held.run), await store.run(crawl)],
    )
  })

  test('the trail of one target is not hidden by what was done to the others of its run', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await enqueueCrawl(store, 5)
    const targets = (await listTargets(store, run)).map(({ id }) => id)
    for (const target of targets) await store.parkTargets({ targets: [target], ...AUDIT_INFO })

    for (const newestFirst of [true, false]) {
      const trail = await store.audit({ run, target: targets[2]!, newestFirst, limit: 1 })
      assert.deepEqual(
        trail.map(({ target }) => target),
        [targets[2]],
      )
    }
  })

  test('the trail is read by run, source and time, in either direction, page by page, and summed up', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const a = await enqueueCrawl(store, 1, { source: 'a' })
    await store.moveRun(move(a))
    await db.advanceClock(3_600_000)
    const b = await enqueueCrawl(store, 1, { source: 'b' })
    await store.moveRun(move(b, { to: 'abandoned', action: 'abandon' }))
    await enqueueCrawl(store, 1, { source: 'a' }).then((run) => store.moveRun(move(run)))
    const since = (await store.now()) - 1_800_000
    const sources = async (filter: Partial<Parameters<Store['audit']>[0]>) =>
      (await store.audit({ limit: 10, ...filter })).map(({ source }) => source)

    assert.deepEqual(await sources({}), ['a', 'b', 'a'])
    assert.deepEqual(await sources({ since }), ['b', 'a'])
    assert.deepEqual(await sources({ newestFirst: true, limit: 2 }), ['a', 'b'])
    const [, last] = await store.audit({ newestFirst: true, limit: 2 })
    assert.deepEqual(await sources({ newestFirst: true, after: last!.id }), ['a'])
    assert.deepEqual(await sources({ source: 'a', since }), ['a'])
    assert.deepEqual(await sources({ run: b, newestFirst: true }), ['b'])
    const metrics = await store.extend(METRICS_STORE)
    const counts = await metrics.auditCounts({})
    assert.deepEqual(
      counts.map(({ source, action, count }) => [source, action, count]),
      [
        ['a', 'cancel', 2],
        ['b', 'abandon', 1],
      ],
    )
    assert.ok(counts.every(({ lastAt }) => lastAt > since))
    assert.deepEqual(
      (await metrics.auditCounts({ since, source: 'a' })).map(({ count }) => count),
      [1],
    )
  })
}
