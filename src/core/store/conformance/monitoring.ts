import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ACKNOWLEDGE_STORE } from '../../../features/acknowledge/store/store.ts'
import { METRICS_STORE } from '../../../features/metrics/store/store.ts'
import { newId } from '../../model/id.ts'
import { recordLatency, emptyStats, sumStats } from '../../model/latency.ts'
import { DEFAULT_POLICY } from '../../model/policy.ts'
import { RUN_STATUSES } from '../../model/run.ts'
import {
  assertAllOk,
  begin,
  beginOne,
  recoverWorker,
  claim,
  claimOne,
  registerWorker,
  savePage,
  makeItems,
  SOURCE,
  enqueueCrawl,
} from '../../../testing/fixtures.ts'
import { openExtended, type Engine } from '../../../testing/test-database.ts'
import type { DeadLetter, DeadLetterFilter, RunFilter, Store } from '../store.ts'

export function monitoringTests(engine: Engine): void {
  test('all runs are counted by status, and those that no run is in are 0', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const none = Object.fromEntries(RUN_STATUSES.map((status) => [status, 0]))
    assert.deepEqual(await store.runTotals(), none)

    await enqueueCrawl(store, 0)
    await store.settle()
    await enqueueCrawl(store, 1)
    await enqueueCrawl(store, 1, { source: 'other' })
    await begin(store, await registerWorker(store), { source: 'single' })

    assert.deepEqual(await store.runTotals(), { ...none, succeeded: 1, queued: 2, running: 1 })
  })

  test('of each source that failed last the newest run is found, and of no other', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    assert.deepEqual((await store.runs({ latestFailed: true, limit: 9 })).items, [])
    const worker = await registerWorker(store)
    const failOne = async (source: string): Promise<string> => {
      const claimed = await beginOne(store, worker, { source })
      assertAllOk(await store.fail([{ ...claimed, error: 'no', becomes: 'failed' }]))
      await store.settle()
      return claimed.run
    }
    await failOne('b')
    const last = await failOne('b')
    await failOne('followed')
    await begin(store, worker, { source: 'followed' })
    await failOne('fixed')
    assertAllOk(await store.finish([await beginOne(store, worker, { source: 'fixed' })]))
    await store.settle()
    const newest = await failOne('a')

    const { items: found } = await store.runs({ latestFailed: true, limit: 9 })

    assert.deepEqual(
      found.map(({ id, source, status }) => ({ id, source, status })),
      [
        { id: newest, source: 'a', status: 'failed' },
        { id: last, source: 'b', status: 'failed' },
      ],
    )
    assert.equal(found[0]!.counts.targets.failed, 1)
  })

  test('P14 the totals of targets are the sum of the books of all runs', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    assert.equal((await store.targetTotals()).pages, 0)
    await runWithDeadLetters(store)
    await runWithDeadLetters(store, 'other')
    const [claimed] = await claim(store, await registerWorker(store), 1)
    await savePage(store, claimed!, { items: makeItems(0, 4), skipped: 3 })
    await savePage(store, claimed!).catch(() => {})

    const totals = await store.targetTotals()

    const { items: runs } = await store.runs({ limit: 10 })
    for (const status of ['planned', 'in_progress', 'done', 'failed', 'stuck', 'parked'] as const) {
      const sum = runs.reduce((sum, run) => sum + run.counts.targets[status], 0)
      assert.equal(totals.targets[status], sum, status)
    }
    for (const name of ['pages', 'itemsNew', 'itemsUpdated', 'skipped', 'refused'] as const) {
      const sum = runs.reduce((sum, run) => sum + run.counts[name], 0)
      assert.equal(totals[name], sum, name)
    }
    assert.equal(totals.itemsNew, 4)
    assert.equal(totals.targets.failed, 6)
  })

  test('dead letters are listed by id, source, status and acknowledgement, none twice and none missing', async () => {
    await using db = await engine.fresh()
    const store = await openExtended(db, ACKNOWLEDGE_STORE)
    const before = await store.now()
    const run = await runWithDeadLetters(store)
    const other = await runWithDeadLetters(store, 'other')
    const audit = { actor: 'alice', because: 'the site is gone' }
    await store.acknowledge({ run: other, undo: false, dryRun: false, ...audit })
    const find = async (filter: Omit<DeadLetterFilter, 'limit'>): Promise<DeadLetter[]> => {
      const found: DeadLetter[] = []
      for (let after: string | null | undefined; after !== null;) {
        const { items, next } = await store.deadLetters({ ...filter, after, limit: 2 })
        found.push(...items)
        after = next
      }
      assert.deepEqual(
        found.map(({ id }) => id),
        [...new Set(found.map(({ id }) => id))].sort(),
      )
      return found
    }

    const all = await find({})

    assert.equal(all.length, 10)
    for (const { id, key, source, status, error, at, ...letter } of all) {
      const target = (await store.target(id))!
      assert.deepEqual([target.key, target.status, target.run], [key, status, letter.run])
      assert.equal(source, letter.run === run ? SOURCE : 'other')
      assert.equal(target.lastError ?? '', error)
      assert.ok(before - 1_000 <= at && at <= before + 60_000)
    }
    assert.deepEqual(
      new Set((await find({ source: 'other' })).map((letter) => letter.run)),
      new Set([other]),
    )
    assert.equal((await find({ statuses: ['failed'] })).length, 6)
    assert.equal((await find({ statuses: ['stuck', 'parked'], source: SOURCE })).length, 2)
    assert.deepEqual(await find({ source: 'nobody' }), [])
    for (const acknowledged of [true, false]) {
      const found = await find({ acknowledged })
      assert.equal(found.length, 5)
      assert.deepEqual(
        new Set(found.map((letter) => letter.run)),
        new Set([acknowledged ? other : run]),
      )
    }
    assert.equal((await find({ acknowledged: true, statuses: ['failed'] })).length, 3)
    assert.deepEqual(await find({ acknowledged: true, source: SOURCE }), [])
  })

  test('runs with dead letters that are acknowledged, or are not, are listed once each, newest first', async () => {
    await using db = await engine.fresh()
    const store = await openExtended(db, ACKNOWLEDGE_STORE)
    const [a, b, c] = [
      await runWithDeadLetters(store, 'a'),
      await runWithDeadLetters(store, 'b'),
      await runWithDeadLetters(store, 'c'),
    ]
    await enqueueCrawl(store, 2, { source: 'd' })
    const all = { undo: false, dryRun: false, actor: 'alice', because: 'the site is gone' }
    await store.acknowledge({ run: a, ...all })
    const [parked] = (await store.targets(b, { statuses: ['parked'], limit: 1 })).items
    await store.acknowledge({ run: b, targets: [parked!.id], ...all })
    const find = async (deadLetters: RunFilter['deadLetters'], source?: string) => {
      const found: string[] = []
      for (let after: string | undefined; ;) {
        const { items, next } = await store.runs({ deadLetters, source, after, limit: 1 })
        found.push(...items.map(({ id }) => id))
        if (next === null) return found
        after = next
      }
    }

    assert.deepEqual(await find('unacknowledged'), [c, b])
    assert.deepEqual(await find('acknowledged'), [b, a])
    assert.deepEqual(await find('acknowledged', 'a'), [a])
    assert.deepEqual(await find('unacknowledged', 'a'), [])
  })

  test('what a worker measures is kept as it last sent it, also when it has ended', async () => {
    await using db = await engine.fresh()
    const store = await openExtended(db, METRICS_STORE)
    const [one, two] = [await registerWorker(store), await registerWorker(store)]
    await registerWorker(store)
    const beat = (worker: string, stats?: unknown) =>
      store.heartbeat({ worker, claimIds: [], loopLagMs: 0, ...(stats !== undefined && { stats }) })
    assert.deepEqual(await store.workerStats(), [])

    await beat(one, { checkpoints: [1, 2] })
    await beat(one, { checkpoints: [3, 4] })
    await beat(one)
    await beat(two, { checkpoints: [5] })
    await store.retireWorker(two)

    const all = (await store.workerStats()) as { checkpoints: number[] }[]
    assert.deepEqual(all.map(({ checkpoints }) => checkpoints).sort(), [[3, 4], [5]])
    assert.equal((await store.worker(one))?.heartbeats, 3)
  })

  test('what workers that ended long ago measured is added up, and nothing is lost of it', async () => {
    await using db = await engine.fresh()
    const store = await openExtended(db, METRICS_STORE)
    const beat = async (): Promise<string> => {
      const worker = await registerWorker(store)
      const stats = emptyStats()
      for (const seconds of [0.5, 2]) recordLatency(stats.checkpoint, seconds)
      await store.heartbeat({ worker, claimIds: [], loopLagMs: 0, stats })
      return worker
    }
    for (let n = 0; n < 5; n++) await store.retireWorker(await beat())
    const odd = await registerWorker(store)
    await store.heartbeat({
      worker: odd,
      claimIds: [],
      loopLagMs: 0,
      stats: { of: 'another kind' },
    })
    await store.retireWorker(odd)
    await beat()
    const before = sumStats(await store.workerStats())
    const now = await store.now()
    await store.prune({ statsBefore: now - 60_000 })
    assert.equal((await store.workerStats()).length, 7)
    await store.prune({ statsBefore: now + 60_000 })
    await store.prune({ statsBefore: now + 60_000 })
    const after = await store.workerStats()
    assert.equal(after.length, 2)
    assert.deepEqual(sumStats(after), before)
    assert.equal(before.checkpoint.seconds, 6 * 2.5)
  })

  test('the claims of workers are returned at once, by run and group', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [one, two] = [
      await registerWorker(store),
      await registerWorker(store, { source: 'other' }),
    ]
    const targets = ['CA', 'CA', 'TX'].map((group, n) => ({ key: `k${n}`, group }))
    await enqueueCrawl(store, targets)
    await enqueueCrawl(store, 1, { source: 'other' })
    await claim(store, one, 3)
    await claimOne(store, two, { source: 'other' })
    await registerWorker(store)
    const told = await store.holdings()
    const held = [
      ...(await store.claimsOf(one, null, 10)),
      ...(await store.claimsOf(two, null, 10)),
    ].map(({ target }) => target)
    for (const { worker, group, policy, targets, lastActivityAt } of told) {
      const own = held.filter((target) => target.worker === worker && target.group === group)
      assert.equal(targets, own.length)
      assert.equal(lastActivityAt, Math.min(...own.map((target) => target.lastActivityAt)))
      assert.deepEqual(policy, DEFAULT_POLICY)
    }
    assert.equal(told.length, 3)
    await recoverWorker(store, one)
    assert.deepEqual(
      (await store.holdings()).map(({ worker }) => worker),
      [two],
    )
  })

  test('each turn is a turn of its own', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [one, two] = [await registerWorker(store), await registerWorker(store)]
    for (const turn of ['sweep', 'monitor', 'sample', 'alerts a', 'alerts b'] as const) {
      assert.equal(await store.acquireLeadership(one, 60_000, turn), true)
      assert.equal(await store.acquireLeadership(two, 60_000, turn), false)
    }
  })
}

/** A run with two kinds of failed targets, a held one, a parked one, a done one and one in line. */
async function runWithDeadLetters(store: Store, source = SOURCE): Promise<string> {
  const worker = await registerWorker(store, { source })
  const run = await enqueueCrawl(store, 7, { source })
  const [a, b, c, d, e] = await claim(store, worker, 5, { source })
  const failed = (error: string) => ({ error, becomes: 'failed' as const })
  assertAllOk(await store.fail([a!, b!].map((target) => ({ ...target, ...failed('HTTP 503') }))))
  assertAllOk(await store.fail([{ ...c!, ...failed('no such page') }]))
  assertAllOk(await store.fail([{ ...d!, error: 'took its worker down', becomes: 'parked' }]))
  assertAllOk(await store.finish([e!]))
  const dead = await registerWorker(store, { source, id: newId() })
  await claimOne(store, dead, { source, isIdle: true })
  await recoverWorker(store, dead, 'hold')
  return run
}
