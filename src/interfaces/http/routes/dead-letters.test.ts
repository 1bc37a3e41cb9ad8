import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { RunId } from '../../../core/model/id.ts'
import type { DeadLetterFilter } from '../../../core/store/store.ts'
import { createApiClient, type ApiClient } from '../../../testing/api-client.ts'
import { listTargets, claim, enqueueCrawl } from '../../../testing/fixtures.ts'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import { sqliteEngine } from '../../../testing/sqlite-engine.ts'
import { groupDeadLetters } from '../../../presenters/dead-letters.ts'

/** A run that has ended with failed targets, and one parked. */
async function createFailedRun(
  { ctx: { store }, registerLiveWorker }: ApiClient,
  source: string,
): Promise<RunId> {
  const run = await enqueueCrawl(store, 4, { source })
  const claimed = await claim(store, await registerLiveWorker(source), 4, { source })
  for (const [n, one] of claimed.slice(0, 3).entries())
    await store.fail([
      { ...one, error: `GET https://${source}.example/${n} answered 403`, becomes: 'failed' },
    ])
  await store.fail([{ ...claimed[3]!, error: 'it took down 3 workers', becomes: 'parked' }])
  await store.settle(run)
  return run
}

async function statuses({ ctx }: ApiClient, run: RunId): Promise<string[]> {
  return (await listTargets(ctx.store, run)).map(({ status }) => status)
}

for (const engine of [sqliteEngine, postgresEngine]) {
  describe(engine.name, { concurrency: 2 }, () => {
    test('targets with the same kind of error are one group, over all sources', async () => {
      await using api = await createApiClient({ engine })
      for (const source of ['a', 'b']) await createFailedRun(api, source)

      const { total, groups } = await api.get('/api/dead-letters')
      const ofOne = await api.get('/api/dead-letters?source=b')

      assert.equal(total, 8)
      assert.deepEqual(
        groups.map(({ count, statuses, sources }: any) => [count, statuses, sources]),
        [
          [6, { failed: 6 }, ['a', 'b']],
          [2, { parked: 2 }, ['a', 'b']],
        ],
      )
      assert.match(groups[0].error, /^GET https:\/\/[ab]\.example\/\d answered 403$/)
      assert.deepEqual([ofOne.total, ofOne.groups[0].count], [4, 3])
      assert.equal(ofOne.groups[0].fingerprint, groups[0].fingerprint)
    })

    test('a group is retried as previewed; a run that cannot be opened reports the reason, and the others go on', async () => {
      await using api = await createApiClient({ engine })
      const [a, b] = [await createFailedRun(api, 'a'), await createFailedRun(api, 'b')]
      const live = await enqueueCrawl(api.ctx.store, 1, { source: 'b' })
      const [{ fingerprint }] = (await api.get('/api/dead-letters')).groups

      const preview = await api.post('/api/dead-letters/replan', { fingerprint, dryRun: true })
      const wrong = await api.post('/api/dead-letters/replan', { fingerprint, count: 6 }, 409)
      const unknown = await api.post('/api/dead-letters/replan', { fingerprint }, 400)
      const untouched = await statuses(api, a)
      const done = await api.post('/api/dead-letters/replan', {
        fingerprint,
        count: preview.targets,
      })

      assert.deepEqual(wrong.preview, preview)
      assert.match(unknown.error.message, /dryRun first/)
      assert.deepEqual(untouched, ['failed', 'failed', 'failed', 'parked'])
      assert.match(
        preview.summary,
        /^3 targets in 1 run would be put back in the queue.* Run \w{8} refused: .* This cannot be reverted\.$/,
      )
      assert.match(done.summary, /^3 targets in 1 run put back in the queue\. Run \w{8} refused: /)
      assert.deepEqual({ ...done, dryRun: true, summary: preview.summary }, preview)
      const byRun = new Map<string, any>(done.runs.map((one: any) => [one.run, one]))
      assert.deepEqual(byRun.get(a), { run: a, targets: 3, refused: null })
      assert.equal(byRun.get(b).targets, 0)
      assert.ok(byRun.get(b).refused.includes(live.slice(-8)))
      assert.deepEqual(
        [await statuses(api, a), done.undo],
        [['planned', 'planned', 'planned', 'parked'], null],
      )
      assert.deepEqual(await statuses(api, b), ['failed', 'failed', 'failed', 'parked'])
    })

    test('parked ones that go back in the queue can be parked again', async () => {
      await using api = await createApiClient({ engine })
      const run = await createFailedRun(api, 'a')
      const which = { source: 'a', statuses: ['parked'] }

      const done = await api.post('/api/dead-letters/replan', { ...which, count: 1 })
      const back = await statuses(api, run)
      for (const { path, body } of done.undo.calls) await api.post(path, body)

      assert.deepEqual(back, ['failed', 'failed', 'failed', 'planned'])
      assert.deepEqual(await statuses(api, run), ['failed', 'failed', 'failed', 'parked'])
      assert.equal((await listTargets(api.ctx.store, run))[3]!.lastError, 'it took down 3 workers')
    })
  })
}

/** Parked for reasons of one kind, each in other words. */
async function parkTargets(
  { ctx: { store }, registerLiveWorker }: ApiClient,
  count: number,
): Promise<RunId> {
  const run = await enqueueCrawl(store, count)
  const worker = await registerLiveWorker('shop')
  for (let from = 0; from < count; from += 1_000) {
    const claimed = await claim(store, worker, 1_000)
    await store.fail(
      claimed.map((one, n) => ({
        ...one,
        error: `HTTP 500 at page ${from + n}`,
        becomes: 'parked',
      })),
    )
  }
  return run
}

test('ten thousand different errors of one kind are one group within 300 ms, and planned again in one call', async () => {
  await using api = await createApiClient()
  const { store } = api.ctx
  const run = await parkTargets(api, 10_300)
  await api.get('/api/dead-letters')
  const started = process.cpuUsage()
  const { total, isPartial, groups } = await api.get('/api/dead-letters')
  const { user, system } = process.cpuUsage(started)
  const [{ fingerprint, count }] = groups

  const listed = await api.get(`/api/dead-letters/${fingerprint}/targets?limit=500`)
  const preview = await api.post('/api/dead-letters/replan', { fingerprint, dryRun: true })
  const beats = setInterval(() => beat++, 5)
  let beat = 0
  const done = await api.post('/api/dead-letters/replan', { fingerprint, plan: preview.plan })
  clearInterval(beats)

  assert.deepEqual([total, isPartial, groups.length, count], [10_300, false, 1, 10_300])
  assert.ok((user + system) / 1_000 < 300, `${(user + system) / 1_000} ms`)
  assert.deepEqual([listed.items.length, listed.next], [500, listed.items[499].id])
  assert.deepEqual([preview.targets, preview.left], [10_000, 300])
  assert.deepEqual([done.targets, done.left, done.undo], [10_000, 300, null])
  assert.ok(beat >= 5, `the process had ${beat} turns beside it`)
  const { planned, parked } = (await store.run(run))!.counts.targets
  assert.deepEqual({ planned, parked }, { planned: 10_000, parked: 300 })
})

test('an incomplete read is marked, and its counts are lower bounds', async () => {
  await using api = await createApiClient()
  await parkTargets(api, 2_100)
  const { total, isPartial, groups } = await groupDeadLetters(api.ctx.store, {}, 2_000)
  assert.deepEqual([total, isPartial, groups[0]!.count], [2_100, true, 2_000])
})

test('dead letters are listed without a read of the acknowledged ones before them', async () => {
  await using api = await createApiClient()
  const { store } = api.ctx
  await parkTargets(api, 4_100)
  await api.post('/api/dead-letters/acknowledge', {})
  await createFailedRun(api, 'b')
  let read = 0
  const counting = {
    ...store,
    async deadLetters(filter: DeadLetterFilter) {
      const page = await store.deadLetters(filter)
      read += page.items.length
      return page
    },
  }
  const { total, isPartial, groups } = await groupDeadLetters(counting, {})
  const count = groups.reduce((sum, group) => sum + group.count, 0)
  assert.deepEqual([isPartial, count, read], [false, total, total])
})

test('the confirmation covers the targets that were shown: other targets are another plan', async () => {
  await using api = await createApiClient()
  const { store } = api.ctx
  const run = await createFailedRun(api, 'a')
  const [first, second] = await listTargets(store, run)
  await store.parkTargets({ targets: [first!.id], actor: 'ada', because: 'a' })
  const which = { source: 'a', statuses: ['failed'] }
  const { plan } = await api.post('/api/dead-letters/replan', { ...which, dryRun: true })
  const swap = { run, action: 'unpark', reopen: false, dryRun: false, actor: 'b', because: 'b' }
  await store.replan({ ...swap, action: 'unpark', statuses: ['parked'], targets: [first!.id] })
  const [again] = await claim(store, await api.registerLiveWorker('a'), 1, { source: 'a' })
  await store.fail([{ ...again!, error: 'HTTP 500', becomes: 'failed' }])
  await store.parkTargets({ targets: [second!.id], actor: 'ada', because: 'b' })

  const refused = await api.post('/api/dead-letters/replan', { ...which, plan }, 409)

  assert.deepEqual([refused.error.code, refused.preview.targets], ['PLAN_CHANGED', 2])
  assert.deepEqual(await statuses(api, run), ['failed', 'parked', 'failed', 'parked'])
  await api.post('/api/dead-letters/replan', { ...which, plan: refused.preview.plan })
  assert.deepEqual(await statuses(api, run), ['planned', 'parked', 'planned', 'parked'])
})
