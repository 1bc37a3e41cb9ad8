import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SourcePausedError } from '../../../core/model/errors.ts'
import { newId } from '../../../core/model/id.ts'
import { DEFAULT_POLICY } from '../../../core/model/policy.ts'
import type { Store } from '../../../core/store/store.ts'
import {
  assertAllOk,
  begin,
  beginOne,
  claim,
  claimOne,
  enqueueCrawl,
  getTarget,
  listTargets,
  recoverWorker,
  registerWorker,
  savePage,
  SOURCE,
} from '../../../testing/fixtures.ts'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import { sqliteEngine } from '../../../testing/sqlite-engine.ts'
import { openExtended } from '../../../testing/test-database.ts'
import { SOURCE_STORE, type SourceStore } from './store.ts'

type Opened = Store & SourceStore

const AUDIT_INFO = { actor: 'alice', because: 'the site asked for it' }

function setPaused(store: SourceStore, paused: boolean, source = SOURCE): Promise<boolean> {
  return store.setPaused({ source, paused, ...AUDIT_INFO })
}

function requestRunNow(store: SourceStore): Promise<boolean> {
  return store.requestRunNow({ source: SOURCE, ...AUDIT_INFO })
}

for (const engine of [sqliteEngine, postgresEngine]) {
  const open = async (work: (store: Opened) => Promise<void>): Promise<void> => {
    await using db = await engine.fresh()
    await work(await openExtended(db, SOURCE_STORE))
  }

  test(`of a paused source nothing is claimed until it is unpaused, ${engine.name}`, () =>
    open(async (store) => {
      const worker = await registerWorker(store)
      const run = await enqueueCrawl(store, 3)
      const other = await enqueueCrawl(store, 1, { source: 'other' })
      const first = await claimOne(store, worker)

      assert.equal(await setPaused(store, true), true)
      assert.equal(await setPaused(store, true), false, 'it is paused already')
      assert.deepEqual(await claim(store, worker, 2), [])
      const elsewhere = await registerWorker(store, { source: 'other' })
      assert.equal((await claim(store, elsewhere, 1, { source: 'other' })).length, 1)
      // The page in hand is saved, and the target released: neither an error nor a crash.
      const saved = await savePage(store, first)
      assertAllOk(await store.release([saved]))
      const { status, page, crashes, attempts } = await getTarget(store, first.target)
      assert.deepEqual([status, page, crashes, attempts], ['planned', 1, 0, 0])
      assert.equal((await store.run(run))!.paused!.because, AUDIT_INFO.because)
      assert.equal((await store.liveRun(SOURCE))!.paused!.because, AUDIT_INFO.because)
      const live = await store.liveRuns()
      assert.deepEqual(
        live.map((one) => [one.run.id, one.run.paused !== null]),
        [
          [other, false],
          [run, true],
        ],
      )

      assert.equal(await setPaused(store, false), true)
      assert.equal(await setPaused(store, false), false)
      assert.equal((await claim(store, worker, 9)).length, 3)
      const trail = await store.audit({ source: SOURCE, limit: 9 })
      assert.deepEqual(
        trail.map(({ action, run: of, actor, because }) => ({ action, of, actor, because })),
        ['pause', 'unpause'].map((action) => ({ action, of: null, ...AUDIT_INFO })),
      )
    }))

  test(`a claim whose reply got lost is returned again although the source is paused since, ${engine.name}`, () =>
    open(async (store) => {
      const worker = await registerWorker(store)
      await enqueueCrawl(store, 2)
      const request = {
        worker,
        source: SOURCE,
        claimIds: [newId()],
        isIdle: true,
        singleSlot: false,
      }
      const [first] = await store.claim(request)
      await setPaused(store, true)
      assert.deepEqual(await store.claim(request), [first])
    }))

  test(`after a pause no claim is granted, however many ask at once, ${engine.name}`, async () => {
    await using db = await engine.fresh()
    const stores = await Promise.all(
      Array.from({ length: 4 }, () => openExtended(db, SOURCE_STORE)),
    )
    const worker = await registerWorker(stores[0]!)
    await enqueueCrawl(stores[0]!, 400)
    const isPaused = { now: false }
    const claimAll = async (store: Opened): Promise<void> => {
      for (let granted = 1; granted > 0;) {
        const wasPaused = isPaused.now
        granted = (await claim(store, worker, 1)).length
        assert.ok(granted === 0 || !wasPaused, 'a claim that began after the pause was granted')
      }
    }
    const claiming = stores.slice(1).map(claimAll)
    await claim(stores[0]!, worker, 1)
    await setPaused(stores[0]!, true)
    isPaused.now = true
    await Promise.all(claiming)
  })

  test(`a paused source cannot be begun, but what is begun goes on, ${engine.name}`, () =>
    open(async (store) => {
      const worker = await registerWorker(store)
      const claimed = await beginOne(store, worker)
      await setPaused(store, true)
      assertAllOk(await store.release([await savePage(store, claimed)]))
      const isPaused = (error: unknown): boolean => {
        assert.ok(error instanceof SourcePausedError)
        assert.equal(error.data.because, AUDIT_INFO.because)
        assert.match(error.message, /^(\S+) has been paused since .* `unstuck unpause \1`\.$/)
        return true
      }
      await assert.rejects(begin(store, worker), isPaused)
      await setPaused(store, true, 'new')
      await assert.rejects(begin(store, worker, { source: 'new' }), isPaused)
      assert.equal(await store.liveRun('new'), null)
      // Its worker lost the claim for a moment, and has the command still.
      const again = await store.begin({
        source: SOURCE,
        worker,
        policy: DEFAULT_POLICY,
        run: newId(),
        target: newId(),
        claimId: newId(),
        onlyRun: claimed.run,
      })
      assert.equal(again.claimed?.target, claimed.target)
    }))

  test(`a paused run is not planned, and loses the claims of dead workers, ${engine.name}`, () =>
    open(async (store) => {
      const [worker, dead] = [await registerWorker(store), await registerWorker(store)]
      const run = await enqueueCrawl(store, 2, { planned: false })
      await claimOne(store, dead)
      await setPaused(store, true)
      assert.equal(await store.claimPlanning(run, worker), false)
      await recoverWorker(store, dead)
      const targets = await listTargets(store, run)
      assert.deepEqual(
        targets.map(({ status }) => status),
        ['planned', 'planned'],
      )
      await setPaused(store, false)
      assert.equal(await store.claimPlanning(run, worker), true)
    }))

  test(`heartbeats report that the source of the worker is paused, ${engine.name}`, () =>
    open(async (store) => {
      const worker = await registerWorker(store)
      const isPaused = async (): Promise<boolean> =>
        (await store.heartbeat({ worker, claimIds: [], loopLagMs: 0 })).paused !== null
      assert.equal(await isPaused(), false)
      await setPaused(store, true, 'other')
      assert.equal(await isPaused(), false)
      await setPaused(store, true)
      assert.equal(await isPaused(), true)
      await setPaused(store, false)
      assert.equal(await isPaused(), false)
    }))

  test(`the time of a run starts anew when its source is unpaused, ${engine.name}`, () =>
    open(async (store) => {
      const worker = await registerWorker(store)
      const run = await enqueueCrawl(store, 2)
      await claimOne(store, worker)
      assert.equal((await store.run(run))!.resumedAt, null)
      await setPaused(store, true)
      const before = await store.now()
      await setPaused(store, false)
      assert.ok((await store.run(run))!.resumedAt! >= before)
    }))

  test(`a supervisor that waits is asked once to start now, unless the source is paused, ${engine.name}`, () =>
    open(async (store) => {
      const state = async () => (await store.sourceStates([SOURCE]))[0]
      assert.equal(await requestRunNow(store), false, 'no supervisor waits')
      assert.deepEqual(await store.sourceStates(), [])
      const now = await store.now()
      await store.setNextStart(SOURCE, 60_000)
      assert.equal(await requestRunNow(store), true)
      assert.equal(await requestRunNow(store), true)
      const { nextStartAt, isRunNow } = (await state())!
      assert.ok(nextStartAt! >= now + 60_000 && isRunNow)
      // It has started.
      await store.setNextStart(SOURCE, null)
      assert.deepEqual(await state(), {
        source: SOURCE,
        paused: null,
        nextStartAt: null,
        isRunNow: false,
        lastWork: null,
      })
      await store.setNextStart(SOURCE, 60_000)
      assert.equal(await requestRunNow(store), true)
      await setPaused(store, true)
      assert.equal((await state())!.isRunNow, false, 'the request does not outlive the pause')
      assert.equal(await requestRunNow(store), false)
      assert.equal((await store.sourceStates()).length, 1)
    }))

  test(`the next holder of a source lock inherits nothing of a killed supervisor that waited, ${engine.name}`, () =>
    open(async (store) => {
      const [killed, next] = [await registerWorker(store), await registerWorker(store)]
      const lock = { source: SOURCE, killTimeoutMs: 1_000, processTag: 'x' }
      await store.lockSource({ ...lock, worker: killed })
      await store.setNextStart(SOURCE, 60_000)
      await requestRunNow(store)
      await store.lockSource({ ...lock, worker: killed })
      await store.lockSource({ ...lock, worker: next })
      assert.equal((await store.sourceStates([SOURCE]))[0]!.isRunNow, true, 'the lock is held')

      const { heartbeats } = (await store.worker(killed))!
      const takeOverFrom = { worker: killed, heartbeats }
      assert.equal((await store.lockSource({ ...lock, worker: next, takeOverFrom })).worker, next)
      const nothing = {
        source: SOURCE,
        paused: null,
        nextStartAt: null,
        isRunNow: false,
        lastWork: null,
      }
      assert.deepEqual(await store.sourceStates([SOURCE]), [nothing])
      assert.equal(await requestRunNow(store), false)
    }))

  test(`how a source was last worked on is kept whole or not at all, ${engine.name}`, () =>
    open(async (store) => {
      const lastWork = async (): Promise<unknown> =>
        (await store.sourceStates([SOURCE]))[0]?.lastWork
      const work = { command: 'unstuck work crawl.ts', folder: '/srv/shop', host: 'web1' }
      await store.setLastWork(SOURCE, work)
      assert.deepEqual(await lastWork(), work)
      assert.deepEqual(await store.sourceStates(), [], 'it is neither paused nor waits')
      await store.setLastWork('other', work)
      const named = await store.sourceStates([SOURCE, 'unknown', 'other'])
      assert.deepEqual(
        named.map(({ source }) => source),
        ['other', SOURCE],
      )
      await setPaused(store, true)
      await setPaused(store, false)
      assert.deepEqual(await lastWork(), work)

      await store.setLastWork(SOURCE, { ...work, folder: 'a\0b\ud800' })
      assert.deepEqual(await lastWork(), { ...work, folder: 'a\ufffdb\ufffd' })
      await store.setLastWork(SOURCE, { ...work, command: 'x'.repeat(9_000) })
      assert.equal(await lastWork(), null)
    }))
}
