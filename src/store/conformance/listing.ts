import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../../model/id.ts'
import { DEFAULT_POLICY } from '../../model/policy.ts'
import {
  allOk,
  allTargets,
  claim,
  hire,
  save,
  SOURCE,
  startCrawl,
  targetOf,
} from '../../testing/cast.ts'
import type { Engine } from '../../testing/test-database.ts'
import type { Listing, Store } from '../store.ts'

export function listingTests(engine: Engine): void {
  test('runs come newest first, page by page, none twice and none missing', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const made = await endedRuns(store, 7)

    const listed = await everyPage((after) => store.runs({ source: SOURCE, after, limit: 3 }))

    assert.deepEqual(
      listed.map((run) => run.id),
      made.toSorted().reverse(),
    )
  })

  test('runs are found by source, by status and by both', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    await endedRuns(store, 2)
    const live = await startCrawl(store, 1)
    const other = await startCrawl(store, 1, { source: 'other' })
    const ids = async (filter: Partial<Parameters<Store['runs']>[0]>) =>
      (await store.runs({ limit: 10, ...filter })).items.map((run) => run.id).sort()

    assert.equal((await ids({})).length, 4)
    assert.equal((await ids({ source: SOURCE })).length, 3)
    assert.deepEqual(await ids({ status: 'queued' }), [live, other].sort())
    assert.deepEqual(await ids({ source: SOURCE, status: 'queued' }), [live])
    assert.deepEqual(await ids({ source: 'nobody' }), [])
    assert.equal((await store.runs({ limit: 4 })).next, null)
  })

  test('a run is found by the digits its id ends with', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [one, two] = await endedRuns(store, 2)

    assert.deepEqual(await store.runsEnding(one!.slice(-8)), [one])
    assert.deepEqual(await store.runsEnding(two!.slice(-12)), [two])
    assert.deepEqual(await store.runsEnding(two!), [two])
    assert.deepEqual(await store.runsEnding('%'.repeat(8)), [])
    assert.deepEqual(await store.runsEnding('_'.repeat(8)), [])
  })

  test('targets come page by page, by status, by group and by both', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const groups = ['CA', 'TX']
    const targets = Array.from({ length: 12 }, (_, n) => ({
      key: `t${n}`,
      group: groups[n % 2]!,
    }))
    const run = await startCrawl(store, [...targets, 'without a group'])
    allOk(await store.finish(await claim(store, await hire(store), 4)))
    const all = await allTargets(store, run, 5)
    const count = async (filter: Partial<Parameters<Store['targets']>[1]>) =>
      (await everyPage((after) => store.targets(run, { limit: 2, ...filter, after }))).length

    assert.equal(all.length, 13)
    assert.equal(new Set(all.map((target) => target.id)).size, 13)
    assert.equal(await count({ status: 'done' }), 4)
    assert.equal(await count({ group: 'CA' }), 6)
    const done = (group: string) =>
      all.filter((target) => target.group === group && target.status === 'done').length
    assert.equal(await count({ group: 'CA', status: 'done' }), done('CA'))
    assert.equal(await count({ group: 'TX', status: 'done' }), done('TX'))
    assert.equal(all.filter((target) => target.group === null).length, 1)
  })

  test('what is not there is null', async () => {
    await using db = await engine.fresh()
    const store = await db.open()

    assert.equal(await store.run(newId()), null)
    assert.equal(await store.target(newId()), null)
    assert.equal(await store.worker(newId()), null)
    assert.equal(await store.liveRun('nobody'), null)
    assert.deepEqual(await store.countsByGroup(newId()), [])
    assert.deepEqual(await store.countsByPage(newId()), [])
    assert.deepEqual(await store.items('nobody', null, 10), [])
  })

  test('a run keeps the policy it is worked on with', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await startCrawl(store, 1, { policy: { maxCrashes: 7 } })
    assert.deepEqual((await store.run(run))?.policy, { ...DEFAULT_POLICY, maxCrashes: 7 })

    const policy = { ...DEFAULT_POLICY, onCrash: 'hold', maxDurationMs: 5_000 } as const
    await store.setPolicy(run, policy)

    assert.deepEqual((await store.run(run))?.policy, policy)
  })

  test('a target without group, address and claim says so', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await startCrawl(store, ['a'])
    const [target] = await allTargets(store, run)

    assert.partialDeepStrictEqual(target, {
      run,
      key: 'a',
      group: null,
      url: null,
      status: 'planned',
      epoch: 0,
      claimId: null,
      worker: null,
      claimedAt: null,
      seq: 0,
      page: 0,
      pageTarget: null,
      next: null,
      lastItemId: null,
      cursor: null,
      attempts: 0,
      errors: 0,
      crashes: 0,
      crashesAlone: 0,
      lastError: null,
      finishedAt: null,
    })
  })

  test('targets are counted by the page they stand at', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await startCrawl(store, 4)
    const [one, two] = await claim(store, await hire(store), 2)
    await save(store, await save(store, one!))
    await save(store, two!)

    assert.deepEqual(await store.countsByPage(run), [
      { page: 0, targets: 2 },
      { page: 1, targets: 1 },
      { page: 2, targets: 1 },
    ])
    assert.equal((await targetOf(store, one!.target)).page, 2)
  })
}

async function endedRuns(store: Store, count: number): Promise<string[]> {
  const made: string[] = []
  for (let n = 0; n < count; n++) {
    made.push(await startCrawl(store, 0))
    await store.settle()
  }
  return made
}

async function everyPage<T>(
  read: (after: string | undefined) => Promise<Listing<T>>,
): Promise<T[]> {
  const all: T[] = []
  for (let after: string | null | undefined; after !== null;) {
    const { items, next } = await read(after)
    all.push(...items)
    after = next
  }
  return all
}
