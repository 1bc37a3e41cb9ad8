import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { ClaimedTarget } from '../../model/claim.ts'
import { newId } from '../../model/id.ts'
import {
  claim,
  registerWorker,
  nextCheckpoint,
  SOURCE,
  enqueueCrawl,
  recoverWorker,
  assertAllOk,
  savePage,
} from '../../../testing/fixtures.ts'
import { assertCountersConsistent } from '../../../testing/assert-counters.ts'
import { StoreFuzzer } from '../../../testing/store-fuzzer.ts'
import type { Engine } from '../../../testing/test-database.ts'

export function counterTests(engine: Engine): void {
  test('P14 books balance: the counts of a run and of its groups are what its rows say', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [worker, dead] = [await registerWorker(store), await registerWorker(store)]
    const run = await enqueueCrawl(store, [
      ...Array.from({ length: 8 }, (_, n) => ({ key: `ca${n}`, group: 'CA' })),
      ...Array.from({ length: 4 }, (_, n) => ({ key: `tx${n}`, group: 'TX' })),
      'no group',
    ])
    const [a, b, c, d, e, f] = await claim(store, worker, 6)
    await claim(store, dead, 2)
    await savePage(store, a!, { skipped: 4, done: true })
    assertAllOk(await store.finish([b!]))
    assertAllOk(await store.fail([{ ...c!, error: 'x', becomes: 'failed' }]))
    assertAllOk(await store.fail([{ ...d!, error: 'x', becomes: { retryInMs: 60_000 } }]))
    assertAllOk(await store.fail([{ ...e!, error: 'x', becomes: 'parked' }]))
    await recoverWorker(store, dead, 'hold')

    const counts = (await store.run(run))!.counts
    assert.deepEqual(counts.targets, {
      planned: 6,
      in_progress: 1,
      done: 2,
      failed: 1,
      stuck: 2,
      parked: 1,
    })
    assert.equal(counts.skipped, 4)
    await assertCountersConsistent(store, run)
    const groups = await store.countsByGroup(run)
    assert.deepEqual(groups.map(({ group }) => group).sort(), ['CA', 'TX', null].sort())
    assert.ok(f)
  })

  test('P14 books balance in every single look, while many stores are at work', async () => {
    await using db = await engine.fresh()
    const stores = await Promise.all(Array.from({ length: 5 }, () => db.open()))
    const reader = await db.open()
    const run = await enqueueCrawl(reader, 60)
    let working = true
    const look = async (): Promise<void> => {
      for (; working; await new Promise(setImmediate)) {
        const { targets } = (await reader.run(run))!.counts
        const total = Object.values(targets).reduce((sum, n) => sum + n, 0)
        assert.equal(total, 60)
        assert.ok(Object.values(targets).every((n) => n >= 0))
      }
    }

    const looking = look()
    await Promise.all(
      stores.map(async (store) => {
        const worker = await registerWorker(store)
        for (;;) {
          const claims: ClaimedTarget[] = await claim(store, worker, 3)
          if (claims.length === 0) break
          assertAllOk(
            await store.checkpoint(claims.map((claim) => nextCheckpoint(claim, { done: true }))),
          )
        }
      }),
    )
    working = false
    await looking

    assert.equal((await reader.run(run))?.counts.targets.done, 60)
    await assertCountersConsistent(reader, run)
  })

  test('P6 P7 P14 in any interleaving of several stores the books balance, moves are legal, nothing goes back', async () => {
    await using db = await engine.fresh()
    const stores = await Promise.all(Array.from({ length: 4 }, () => db.open()))

    await fc.assert(
      fc.asyncProperty(StoreFuzzer.sequences(stores.length), async (script) => {
        const source = `${SOURCE} ${newId()}`
        const fuzzer = await StoreFuzzer.create(stores, source)
        // Each scene is played by all its actors at once.
        for (const scene of script) {
          await Promise.all(scene.map((act) => fuzzer.apply(act)))
          await fuzzer.assertSound()
        }
      }),
      { numRuns: engine.name === 'sqlite' ? 25 : 15, endOnFailure: true },
    )
  })
}
