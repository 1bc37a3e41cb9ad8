import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { RunId } from '../../../core/model/id.ts'
import { recover } from '../../../core/recovery/recover.ts'
import { thisProcess } from '../../../core/host/identity.ts'
import { createApiClient, type ApiClient } from '../../../testing/api-client.ts'
import {
  operatorContext,
  listTargets,
  claim,
  claimOne,
  registerWorker,
  savePage,
  enqueueCrawl,
  enqueueInterrupted,
  listOperations,
} from '../../../testing/fixtures.ts'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import { sqliteEngine } from '../../../testing/sqlite-engine.ts'

const HOUR_MS = 3_600_000

/** A crawl whose worker is gone with a target in hand. */
async function createOrphan(
  { ctx: { store }, registerDeadWorker }: ApiClient,
  source: string,
  onCrash: 'resume' | 'fail' | 'hold' = 'resume',
): Promise<RunId> {
  const run = await enqueueCrawl(store, 2, { source, policy: { onCrash } })
  await savePage(store, await claimOne(store, await registerDeadWorker(source), { source }))
  return run
}

async function statuses({ ctx }: ApiClient, run: RunId): Promise<string[]> {
  return (await listTargets(ctx.store, run)).map(({ status }) => status).sort()
}

for (const engine of [sqliteEngine, postgresEngine]) {
  describe(engine.name, { concurrency: 2 }, () => {
    test('the previewed plan is applied, with an undo per run; a changed plan is not', async () => {
      await using api = await createApiClient({ engine })
      const held = await createOrphan(api, 'a', 'hold')
      const preview = await api.get('/api/recovery')
      const resumed = await createOrphan(api, 'b')

      const changed = await api.post('/api/recovery', { plan: preview.plan }, 409)
      const untouched = await statuses(api, held)
      const done = await api.post('/api/recovery', { plan: changed.preview.plan })

      assert.deepEqual([preview.planned, preview.dryRun, preview.undo], [1, true, null])
      assert.equal(changed.error.code, 'PLAN_CHANGED')
      assert.deepEqual([changed.preview.planned, changed.preview.dryRun], [2, true])
      assert.deepEqual(untouched, ['in_progress', 'planned'])
      assert.deepEqual([done.applied, done.planned, done.plan], [2, 2, changed.preview.plan])
      assert.deepEqual(await statuses(api, held), ['planned', 'stuck'])
      assert.deepEqual(await statuses(api, resumed), ['planned', 'planned'])
      // What continues from its cursor needs no undo.
      assert.deepEqual(
        done.undo.calls.map(({ path }: any) => path),
        [`/api/runs/${held}/revert`],
      )
      for (const { path, body } of done.undo.calls) await api.post(path, body)
      assert.deepEqual(await statuses(api, held), ['planned', 'planned'])
      assert.deepEqual([(await api.get('/api/recovery')).planned], [0])
    })

    test('clean: dead runs are marked and reverted; a run that became alive meanwhile changes the plan', async () => {
      await using api = await createApiClient({ engine })
      const { store, database } = api.ctx
      const dead = await enqueueInterrupted(store, 1, { source: 'a' })
      const other = await enqueueInterrupted(store, 1, { source: 'b' })
      await database.advanceClock(25 * HOUR_MS)
      const preview = await api.get('/api/clean')
      await claimOne(store, await api.registerLiveWorker('b'), { source: 'b' })

      const changed = await api.post('/api/clean', { plan: preview.plan }, 409)
      const refused = await api.post('/api/clean', { runs: [other] }, 400)
      const done = await api.post('/api/clean', { runs: [dead], plan: changed.preview.plan })
      const marked = (await store.run(dead))!.status
      for (const { path, body } of done.undo.calls) await api.post(path, body)

      assert.deepEqual([preview.dead.length, changed.preview.dead.length], [2, 1])
      assert.match(refused.error.message, /is not dead/)
      assert.equal(marked, 'abandoned')
      assert.deepEqual(
        done.cleaned.map(({ run, outcome }: any) => [run, outcome]),
        [[dead, 'applied']],
      )
      assert.equal((await store.run(dead))!.status, 'interrupted')
    })
  })
}

describe('recovery', { concurrency: 2 }, () => {
  test('only what was named is done: by source, group and time without a heartbeat', async () => {
    await using api = await createApiClient()
    const [a, b] = [await createOrphan(api, 'a'), await createOrphan(api, 'b')]

    const none = await api.post('/api/recovery', { timeout: '1h' })
    const one = await api.post('/api/recovery', { sources: ['a'] })

    assert.deepEqual([none.applied, one.applied], [0, 1])
    assert.equal(one.command, 'unstuck recover --yes --source=a')
    assert.deepEqual(
      [await statuses(api, a), await statuses(api, b)],
      [
        ['planned', 'planned'],
        ['in_progress', 'planned'],
      ],
    )
    const group = await api.get("/api/recovery?group=it's&group=CA&timeout=5m")
    assert.equal(group.command, "unstuck recover --yes --timeout=5m '--group=it'\\''s' --group=CA")
  })

  test('of many orphans the first are shown and all are counted, and all are done', async () => {
    await using api = await createApiClient()
    const { store } = api.ctx
    const run = await enqueueCrawl(store, 620, { source: 'a' })
    await claim(store, await api.registerDeadWorker('a'), 620, { source: 'a' })

    const seen = await api.get('/api/recovery')
    const done = await api.post('/api/recovery', { plan: seen.plan })

    assert.deepEqual([seen.verdicts.length, seen.total, seen.planned], [500, 620, 620])
    assert.deepEqual([seen.active.length, seen.activeTotal], [1, 1])
    assert.deepEqual([done.verdicts.length, done.total, done.applied], [500, 620, 620])
    assert.equal((await store.run(run))!.counts.targets.in_progress, 0)
  })

  test('verdicts that appear after the preview are not applied', async () => {
    await using api = await createApiClient()
    const { store } = api.ctx
    const [a, b] = [await createOrphan(api, 'a'), await createOrphan(api, 'b')]
    const old = await enqueueInterrupted(store, 1, { source: 'c', policy: { autoClean: true } })
    await api.ctx.database.advanceClock(25 * HOUR_MS)
    const ofA = (await listTargets(store, a)).map(({ id }) => id)

    const { verdicts } = await recover(operatorContext(store), { only: new Set(ofA) })

    assert.deepEqual(
      verdicts.map(({ run, applied }) => [run, applied]),
      [[a, true]],
    )
    assert.deepEqual(await statuses(api, b), ['in_progress', 'planned'])
    const rest = await recover(operatorContext(store), { only: new Set([old]) })
    assert.deepEqual(
      rest.verdicts.map(({ run, action }) => [run, action]),
      [[old, 'abandon']],
    )
  })

  test('it waits only if a worker is in doubt; a client that disconnects meanwhile changes nothing', async () => {
    await using api = await createApiClient()
    const { store, database, url, tokens } = api.ctx
    const present = await registerWorker(store, { heartbeatMs: HOUR_MS, leaseMs: 24 * HOUR_MS })
    await api.get('/api/recovery')
    await store.retireWorker(present)

    const run = await enqueueCrawl(store, 1)
    const process = { ...thisProcess(), host: 'far', bootId: 'x' }
    await claimOne(store, await registerWorker(store, { process, heartbeatMs: 20_000 }))
    await database.advanceClock(HOUR_MS)
    const leave = async (afterMs: number): Promise<void> => {
      const call = fetch(`${url}/api/recovery`, {
        method: 'POST',
        headers: { authorization: `Bearer ${tokens.operator}`, 'content-type': 'application/json' },
        body: '{}',
        signal: AbortSignal.timeout(afterMs),
      })
      await assert.rejects(call, { name: 'TimeoutError' })
    }
    const isNoted = async (): Promise<boolean> => (await listOperations(store, 1)).items.length > 0
    // On a busy machine a call may not get as far as the server before it is taken back.
    for (let afterMs = 200; afterMs < 10_000 && !(await isNoted()); afterMs *= 2) {
      await leave(afterMs)
      // The server hears of it a moment later.
      for (let n = 0; n < 100 && !(await isNoted()); n++) await sleep(20)
    }

    assert.ok(await isNoted())
    assert.deepEqual(await statuses(api, run), ['in_progress'])
  })
})
