import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { newId, type WorkerId } from '../../model/id.ts'
import {
  itemsOf,
  listTargets,
  beginOne,
  recoverWorker,
  claim,
  registerWorker,
  nextCheckpoint,
  enqueueCrawl,
} from '../../../testing/fixtures.ts'
import { assertCountersConsistent } from '../../../testing/assert-counters.ts'
import type { Engine, TestDatabase } from '../../../testing/test-database.ts'
import type { Store } from '../store.ts'

const TARGETS = 4
const PAGES = 4
/** The others may be slow; they are not stuck. */
const TIMEOUT_MS = 30_000
const EXPECTED = Array.from({ length: TARGETS }, (_, t) =>
  Array.from({ length: PAGES }, (_, p) => [`t${t}/p${p + 1}/a`, `t${t}/p${p + 1}/b`, `all/${p}`]),
)
  .flat(2)
  .filter((key, n, all) => all.indexOf(key) === n)
  .sort()

export function faultTests(engine: Engine): void {
  const insertLedger = `INSERT INTO ledger (source, line) VALUES (${engine.placeholder(1)}, ${engine.placeholder(2)})`

  test('P5 exactly-once effect: whatever dies, repeats or comes late, the items are those of a run without faults and each page is in once', async () => {
    await using db = await engine.fresh()
    const stores = await Promise.all(Array.from({ length: 3 }, () => db.open()))
    await db.raw('CREATE TABLE ledger (source TEXT, line TEXT)')
    const faults = fc.infiniteStream(
      fc.oneof(
        { weight: 5, arbitrary: fc.constant('none' as const) },
        fc.constantFrom('die', 'repeat', 'lateWrite', 'release', 'fail', 'userThrows' as const),
      ),
    )

    await fc.assert(
      fc.asyncProperty(faults, async (faults) => {
        const source = newId()
        const run = await enqueueCrawl(
          stores[0]!,
          Array.from({ length: TARGETS }, (_, n) => `t${n}`),
          { source },
        )
        const nextFault = () => faults.next().value as Fault
        await Promise.all(stores.map((store) => crawl(store, source, insertLedger, nextFault)))
        await assertComplete(db, stores[0]!, source, run)
      }),
      { numRuns: engine.name === 'sqlite' ? 12 : 8, endOnFailure: true },
    )
  })

  test('P5 a run with one target that dies at every page is taken up each time where it was', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const late: [Store, Parameters<Store['checkpoint']>[0][number]][] = []
    for (let n = 1; n <= 6; n++) {
      const worker = await registerWorker(store)
      const claimed = await beginOne(store, worker)
      assert.equal(claimed.page, n - 1)
      const next = nextCheckpoint(claimed, { items: [{ key: `p${n}`, data: n }], done: n === 6 })
      assert.equal((await store.checkpoint([next]))[0]?.ok, true)
      late.push([store, nextCheckpoint({ ...claimed, seq: n, page: n })])
      await recoverWorker(store, worker)
    }
    for (const [store, page] of late) assert.equal((await store.checkpoint([page]))[0]?.ok, false)
    assert.equal((await itemsOf(store, 'shop')).length, 6)
  })
}

type Fault = 'none' | 'die' | 'repeat' | 'lateWrite' | 'release' | 'fail' | 'userThrows'

/** Works until nothing is left, as workers that die (and are found dead) again and again. */
async function crawl(
  store: Store,
  source: string,
  insertLedger: string,
  nextFault: () => Fault,
): Promise<void> {
  let worker = await registerWorker(store, { source })
  for (let idleSince = performance.now(); performance.now() - idleSince < TIMEOUT_MS;) {
    const [claimed] = await claim(store, worker, 1, { source, isIdle: true })
    if (!claimed) {
      const live = await store.liveRun(source)
      if (!live || live.counts.targets.planned + live.counts.targets.in_progress === 0) return
      await new Promise((resolve) => setTimeout(resolve, 5))
      continue
    }
    idleSince = performance.now()
    let at = claimed
    for (let held = true; held;) {
      const n = at.page + 1
      const next = nextCheckpoint(at, {
        done: n === PAGES,
        items: [
          { key: `${at.key}/p${n}/a`, data: n },
          { key: `${at.key}/p${n}/b`, data: n },
          { key: `all/${n - 1}`, data: 'shared' },
        ],
      })
      const write = () =>
        store.checkpoint([next], (tx) => tx.query(insertLedger, [source, `${at.key}/p${n}`]))
      const fault = nextFault()
      if (fault === 'die') {
        await recoverAllClaims(store, worker)
        worker = await registerWorker(store, { source })
        break
      }
      if (fault === 'release') {
        await store.release([at])
        break
      }
      if (fault === 'fail') {
        await store.fail([{ ...at, error: 'x', becomes: { retryInMs: 0 } }])
        break
      }
      if (fault === 'userThrows') {
        await assert.rejects(
          store.checkpoint([next], async (tx) => {
            await tx.query(insertLedger, [source, 'must not stay'])
            throw new Error('of the user')
          }),
          /of the user/,
        )
        continue
      }
      if (fault === 'lateWrite') {
        // Taken for dead, but alive: its write comes after the new owner could have started.
        await recoverAllClaims(store, worker)
        assert.equal((await write())[0]!.ok, false)
        break
      }
      const outcomes = fault === 'repeat' ? await Promise.all([write(), write()]) : [await write()]
      assert.ok(outcomes.every(([outcome]) => outcome!.ok))
      held = n < PAGES
      at = { ...at, seq: at.seq + 1, page: n }
    }
  }
  assert.fail('work is left that no worker can claim')
}

/** As the sweep: a row that another statement has locked for a moment is recovered by the next attempt. */
async function recoverAllClaims(store: Store, worker: WorkerId): Promise<void> {
  while (!(await recoverWorker(store, worker)).every(Boolean));
}

async function assertComplete(
  db: TestDatabase,
  store: Store,
  source: string,
  run: string,
): Promise<void> {
  const items = await itemsOf(store, source)
  assert.deepEqual(
    items.map((item) => item.key),
    EXPECTED,
  )
  const lines = (await db.raw(`SELECT line FROM ledger WHERE source = '${source}'`)).map((row) =>
    String(row.line),
  )
  const pages = Array.from({ length: TARGETS }, (_, t) =>
    Array.from({ length: PAGES }, (_, p) => `t${t}/p${p + 1}`),
  ).flat()
  assert.deepEqual(lines.sort(), pages.sort())
  for (const target of await listTargets(store, run)) {
    assert.equal(target.status, 'done')
    assert.equal(target.page, PAGES)
  }
  await assertCountersConsistent(store, run)
  const [settled] = await store.settle(run)
  assert.equal(settled?.status, 'succeeded')
}
