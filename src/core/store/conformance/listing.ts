import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ACKNOWLEDGE_STORE } from '../../../features/acknowledge/store/store.ts'
import { newId } from '../../model/id.ts'
import { DEFAULT_POLICY } from '../../model/policy.ts'
import {
  itemsOf,
  assertAllOk,
  listTargets,
  claim,
  registerWorker,
  savePage,
  SOURCE,
  enqueueCrawl,
  getTarget,
} from '../../../testing/fixtures.ts'
import { openExtended, type Engine } from '../../../testing/test-database.ts'
import type { Listing, RunFilter, Store, TargetFilter } from '../store.ts'

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
    const live = await enqueueCrawl(store, 1)
    const other = await enqueueCrawl(store, 1, { source: 'other' })
    const ids = async (filter: Partial<Parameters<Store['runs']>[0]>) =>
      (await store.runs({ limit: 10, ...filter })).items.map((run) => run.id).sort()

    assert.equal((await ids({})).length, 4)
    assert.equal((await ids({ source: SOURCE })).length, 3)
    assert.deepEqual(await ids({ statuses: ['queued'] }), [live, other].sort())
    assert.deepEqual(await ids({ source: SOURCE, statuses: ['queued'] }), [live])
    assert.deepEqual(await ids({ source: 'nobody' }), [])
    assert.equal((await store.runs({ limit: 4 })).next, null)
  })

  test('runs in several statuses come newest first, page by page, none twice and none missing', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const ended = await endedRuns(store, 3)
    const cancelled = await enqueueCrawl(store, 1)
    const cancel = { to: 'cancelled', action: 'cancel', evidence: null, expected: {} } as const
    await store.moveRun({ run: cancelled, ...cancel, actor: 'a', because: 'b' })
    const queued = await enqueueCrawl(store, 1)
    await enqueueCrawl(store, 1, { source: 'other' })
    const list = (source: string | undefined, statuses: RunFilter['statuses']) =>
      everyPage((after) => store.runs({ source, statuses, after, limit: 2 }))
    const ids = async (...asked: Parameters<typeof list>) =>
      (await list(...asked)).map((run) => run.id)

    const expected = [...ended, cancelled, queued].sort().reverse()
    const statuses = ['succeeded', 'queued', 'cancelled', 'queued'] as const
    assert.deepEqual(await ids(SOURCE, statuses), expected)
    assert.equal((await ids(undefined, statuses)).length, 6)
    assert.deepEqual(await ids(undefined, ['running', 'failed']), [])
    assert.equal((await ids(undefined, [])).length, 6, 'none named: all')
  })

  test('runs are found by a part of their source in any case, or by the end of their id', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [hotels, odd, other] = [
      await enqueueCrawl(store, 1, { source: 'Hotel-Prices' }),
      await enqueueCrawl(store, 1, { source: '100%_\\é' }),
      await enqueueCrawl(store, 1, { source: 'other' }),
    ]
    const search = async (search: string, filter: Partial<RunFilter> = {}) =>
      (await store.runs({ search, limit: 10, ...filter })).items.map((run) => run.id).sort()

    assert.deepEqual(await search('hotel'), [hotels])
    assert.deepEqual(await search('L-PRICE', { statuses: ['queued', 'failed'] }), [hotels])
    assert.deepEqual(await search('hotel', { source: 'other' }), [])
    assert.deepEqual(await search(other.slice(-8)), [other])
    assert.deepEqual(await search(other.slice(-8), { statuses: ['queued'] }), [other])
    for (const part of ['%', '_', '\\', '0%_\\é']) assert.deepEqual(await search(part), [odd])
    assert.deepEqual(await search("' OR 1=1 --"), [])
    assert.deepEqual(await search('x\0y'), [])
    assert.equal((await search('')).length, 3)
  })

  test('runs are found by when they were made, whatever clock their id is from', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    await enqueueCrawl(store, 1, { source: 'old' })
    await db.advanceClock(3_600_000)
    const young = await enqueueCrawl(store, 1)
    // Made by a clock that is years behind.
    const late = `00000000${newId().slice(8)}`
    await store.enqueue({ id: late, source: 'late', kind: 'crawl', policy: DEFAULT_POLICY })
    const createdSince = (await store.now()) - 60_000
    const ids = async (filter: Partial<RunFilter>) =>
      (await store.runs({ createdSince, limit: 10, ...filter })).items.map((run) => run.id)

    assert.deepEqual(await ids({}), [young, late])
    assert.deepEqual(await ids({ statuses: ['queued', 'running'] }), [young, late])
    assert.deepEqual(await ids({ source: 'late' }), [late])
    assert.deepEqual(await ids({ source: 'old' }), [])
    assert.deepEqual(await ids({ createdSince: createdSince + 3_600_000 }), [])
  })

  test('a run is found by the digits its id ends with', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [one, two] = await endedRuns(store, 2)

    assert.deepEqual(await store.idsEnding(one!.slice(-8), 'run'), [one])
    assert.deepEqual(await store.idsEnding(two!.slice(-12), 'run'), [two])
    assert.deepEqual(await store.idsEnding(two!, 'run'), [two])
    assert.deepEqual(await store.idsEnding('%'.repeat(8), 'run'), [])
    assert.deepEqual(await store.idsEnding('_'.repeat(8), 'run'), [])
  })

  test('targets come page by page, by status, by group and by both', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const groups = ['CA', 'TX']
    const targets = Array.from({ length: 12 }, (_, n) => ({
      key: `t${n}`,
      group: groups[n % 2]!,
    }))
    const run = await enqueueCrawl(store, [...targets, 'without a group'])
    assertAllOk(await store.finish(await claim(store, await registerWorker(store), 4)))
    const all = await listTargets(store, run, 5)
    const count = async (filter: Partial<Parameters<Store['targets']>[1]>) =>
      (await everyPage((after) => store.targets(run, { limit: 2, ...filter, after }))).length

    assert.equal(all.length, 13)
    assert.equal(new Set(all.map((target) => target.id)).size, 13)
    assert.equal(await count({ statuses: ['done'] }), 4)
    assert.equal(await count({ group: 'CA' }), 6)
    const done = (group: string) =>
      all.filter((target) => target.group === group && target.status === 'done').length
    assert.equal(await count({ group: 'CA', statuses: ['done'] }), done('CA'))
    assert.equal(await count({ group: 'TX', statuses: ['done'] }), done('TX'))
    assert.equal(all.filter((target) => target.group === null).length, 1)
  })

  test('targets in several statuses come in one order, none twice and none missing', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await enqueueCrawl(store, 9)
    const [a, b, ...others] = await claim(store, await registerWorker(store), 6)
    assertAllOk(await store.finish([a!, b!]))
    assertAllOk(await store.fail(others.map((c) => ({ ...c, error: 'x', becomes: 'failed' }))))
    const list = (statuses: TargetFilter['statuses']) =>
      everyPage((after) => store.targets(run, { statuses, after, limit: 2 }))

    const found = await list(['failed', 'done', 'failed'])
    assert.deepEqual(
      found.map(({ id }) => id),
      (await listTargets(store, run))
        .filter(({ status }) => status !== 'planned')
        .map(({ id }) => id),
    )
    assert.deepEqual((await list(['stuck', 'parked'])).length, 0)
    assert.equal((await list([])).length, 9, 'none named: all')
  })

  test('targets that are acknowledged, and those that are not, are listed on their own', async () => {
    await using db = await engine.fresh()
    const store = await openExtended(db, ACKNOWLEDGE_STORE)
    const run = await enqueueCrawl(store, 9)
    const claims = await claim(store, await registerWorker(store), 8)
    assertAllOk(await store.fail(claims.map((one) => ({ ...one, error: 'x', becomes: 'failed' }))))
    const all = (await listTargets(store, run)).filter(({ status }) => status === 'failed')
    const ids = all.map(({ id }) => id)
    const targets = ids.slice(0, 5)
    const audit = { actor: 'alice', because: 'the site is gone' }
    await store.acknowledge({ run, targets, undo: false, dryRun: false, ...audit })
    const list = async (filter: Partial<TargetFilter>) =>
      (await everyPage((after) => store.targets(run, { ...filter, after, limit: 2 }))).map(
        ({ id }) => id,
      )

    const statuses = ['failed', 'parked'] as const
    assert.deepEqual(await list({ acknowledged: true }), targets)
    assert.deepEqual(await list({ acknowledged: false, statuses }), ids.slice(5))
    assert.equal((await list({ acknowledged: false })).length, 4)
    assert.equal((await list({})).length, 9)
  })

  test('targets are found by a part of their key or of their last error, in any case', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await enqueueCrawl(store, ['Berlin/Hotels', 'berlin_bars', 'Paris 100%'])
    const claims = await claim(store, await registerWorker(store), 3)
    const [, bars] = claims
    assertAllOk(await store.release(claims.filter((one) => one !== bars)))
    assertAllOk(await store.fail([{ ...bars!, error: 'HTTP 503 at Paris', becomes: 'failed' }]))
    const search = async (search: string, filter: Partial<TargetFilter> = {}) =>
      (await store.targets(run, { search, limit: 10, ...filter })).items
        .map(({ key }) => key)
        .sort()

    assert.deepEqual(await search('BERLIN'), ['Berlin/Hotels', 'berlin_bars'])
    assert.deepEqual(await search('paris'), ['Paris 100%', 'berlin_bars'])
    assert.deepEqual(await search('paris', { statuses: ['failed'] }), ['berlin_bars'])
    assert.deepEqual(await search('n_b'), ['berlin_bars'])
    assert.deepEqual(await search('%'), ['Paris 100%'])
    assert.deepEqual(await search('x\0y'), [])
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
    assert.deepEqual(await itemsOf(store, 'unknown'), [])
  })

  test('a run keeps the policy it is worked on with', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await enqueueCrawl(store, 1, { policy: { maxCrashes: 7 } })
    assert.deepEqual((await store.run(run))?.policy, { ...DEFAULT_POLICY, maxCrashes: 7 })

    const policy = { ...DEFAULT_POLICY, onCrash: 'hold', maxDurationMs: 5_000 } as const
    await store.setPolicy(run, policy)

    assert.deepEqual((await store.run(run))?.policy, policy)
  })

  test('a target without group, address and claim has null in these fields', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await enqueueCrawl(store, ['a'])
    const [target] = await listTargets(store, run)

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
    const run = await enqueueCrawl(store, 4)
    const [one, two] = await claim(store, await registerWorker(store), 2)
    await savePage(store, await savePage(store, one!))
    await savePage(store, two!)

    assert.deepEqual(await store.countsByPage(run), [
      { page: 0, targets: 2 },
      { page: 1, targets: 1 },
      { page: 2, targets: 1 },
    ])
    assert.equal((await getTarget(store, one!.target)).page, 2)
  })
}

async function endedRuns(store: Store, count: number): Promise<string[]> {
  const made: string[] = []
  for (let n = 0; n < count; n++) {
    made.push(await enqueueCrawl(store, 0))
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
