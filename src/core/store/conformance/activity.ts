import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UsageError } from '../../model/errors.ts'
import { newId, type RunId } from '../../model/id.ts'
import { DEFAULT_POLICY } from '../../model/policy.ts'
import {
  assertLeaseLost,
  begin,
  beginOne,
  recoverWorker,
  registerWorker,
  unwrap,
  SOURCE,
  getTarget,
} from '../../../testing/fixtures.ts'
import type { Engine } from '../../../testing/test-database.ts'
import type { Store } from '../store.ts'

/** Reported activity of a run, and its input. */
export function activityTests(engine: Engine): void {
  test('a sign of activity moves its target and its run, and costs nothing else', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const claimed = await beginOne(store, await registerWorker(store))
    for (const act of [
      () => store.reportActivity(claimed, 0),
      () => store.reportProgress(claimed, { done: 0, total: 9 }),
    ]) {
      await db.advanceClock(60_000)
      const [run, target] = [await store.run(claimed.run), await getTarget(store, claimed.target)]

      unwrap(await act())

      const now = await store.now()
      const after = (await store.run(claimed.run))!
      assert.ok(now - run!.lastActivityAt >= 60_000)
      assert.ok(now - after.lastActivityAt < 30_000)
      const { lastActivityAt, ...rest } = await getTarget(store, claimed.target)
      assert.ok(now - lastActivityAt < 30_000)
      assert.deepEqual({ ...rest, lastActivityAt: target.lastActivityAt }, target)
      assert.deepEqual(after.counts, run!.counts)
    }
  })

  test('the files of a command are counted up, never down, and wherever its run is shown', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const claimed = await beginOne(store, await registerWorker(store))
    const shown = async () => [
      (await store.run(claimed.run))!.artifacts,
      (await store.liveRun(SOURCE))!.artifacts,
      (await store.runs({ limit: 1 })).items[0]!.artifacts,
      (await store.liveRuns())[0]!.run.artifacts,
      (await store.claimsOf(claimed.worker, null, 1))[0]!.run.artifacts,
    ]
    assert.deepEqual(await shown(), [0, 0, 0, 0, 0])

    for (const [artifacts, counted] of [
      [0, 0],
      [3, 3],
      [2, 3],
      [4, 4],
    ] as const) {
      unwrap(await store.reportActivity(claimed, artifacts))
      assert.deepEqual(await shown(), Array(5).fill(counted))
    }
  })

  test('P1 a worker that lost its claim cannot change the run, and gets a typed error', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const [late, next] = [await registerWorker(store), await registerWorker(store)]
    const lost = await beginOne(store, late)
    await recoverWorker(store, late)
    const current = await beginOne(store, next)
    unwrap(await store.reportActivity(current, 1))
    const before = (await store.run(current.run))!

    assertLeaseLost(await store.reportActivity(lost, 9))

    const { refused } = (await store.run(current.run))!.counts
    assert.equal(refused, before.counts.refused + 1)
    assert.equal((await store.run(current.run))!.artifacts, 1)
    unwrap(await store.reportActivity(current, 2))
  })

  test('a run keeps the input of its command, and begin returns it', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    const input = { city: 'Zürich', pages: [1, 2.5, null], deep: { '': true } }
    const id = await queueWith(store, input)

    const begun = await begin(store, worker)

    assert.equal(begun.claimed?.run, id)
    assert.deepEqual((await store.run(id))!.input, input)
    assert.deepEqual((await store.liveRun(SOURCE))!.input, input)
    assert.deepEqual((await store.runs({ limit: 1 })).items[0]!.input, input)
    assert.deepEqual((await store.liveRuns())[0]!.run.input, input)
    const bare = await beginOne(store, worker, { source: 'nothing given' })
    assert.equal((await store.run(bare.run))!.input, null)
  })

  test('a retried run gets the same input', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    const input = ['again', 0, 'NUL \0']
    await queueWith(store, input)
    await begin(store, worker)

    await recoverWorker(store, worker, 'retry')
    const byVerdict = (await store.liveRun(SOURCE))!
    const newRun = newId()
    await store.retryRun({ run: byVerdict.id, newRun, actor: 'the tests', because: 'asked' })

    assert.notEqual(byVerdict.retryOf, null)
    assert.deepEqual(byVerdict.input, input)
    assert.deepEqual((await store.run(newRun))!.input, input)
  })

  test('any JSON can be given, also texts that a column would not take', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    for (const input of [0, false, '', [], {}, 'NUL \0', 'half \ud83d', `it's "quoted" \\u0000`]) {
      const id = await queueWith(store, input, newId())
      assert.deepEqual((await store.run(id))!.input, input)
    }
    for (const nothing of [null, undefined]) {
      const id = await queueWith(store, nothing, newId())
      assert.equal((await store.run(id))!.input, null)
    }
  })

  test('what is no JSON, or too much of it, is refused with advice, and nothing is queued', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const circle: unknown[] = []
    circle.push(circle)

    for (const input of [circle, 10n, () => 1, Symbol('s'), 'x'.repeat(300_000)]) {
      await assert.rejects(queueWith(store, input), (error) => {
        assert.ok(error instanceof UsageError, String(error))
        assert.match(error.message, /^The input for shop is .*\. (Give|Keep) /)
        return true
      })
    }

    assert.equal(await store.liveRun(SOURCE), null)
  })
}

async function queueWith(store: Store, input: unknown, source = SOURCE): Promise<RunId> {
  const id = newId()
  await store.enqueue({ id, source, kind: 'single', policy: DEFAULT_POLICY, input })
  return id
}
