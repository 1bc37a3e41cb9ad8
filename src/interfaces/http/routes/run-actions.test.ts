import assert from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { shortId } from '../../../core/model/id.ts'
import { createRunFolder } from '../../../lib/files/data-folder.ts'
import { createApiClient, type ApiClient, textOf } from '../../../testing/api-client.ts'
import {
  itemsOf,
  listTargets,
  beginOne,
  claimOne,
  enqueueSingle,
  savePage,
  makeItems,
  enqueueCrawl,
} from '../../../testing/fixtures.ts'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import { sqliteEngine } from '../../../testing/sqlite-engine.ts'

/** Does what an answer says takes it back. */
export async function undoChange({ post }: ApiClient, { undo }: any): Promise<void> {
  assert.ok(undo, 'there is no undo')
  for (const { path, body } of undo.calls) await post(path, body)
}

async function statusOf({ ctx }: ApiClient, run: string): Promise<string | undefined> {
  return (await ctx.store.run(run))?.status
}

for (const engine of [sqliteEngine, postgresEngine]) {
  describe(engine.name, { concurrency: 2 }, () => {
    test('cancel: a dry run changes nothing, the result names its undo, and the undo works', async () => {
      await using api = await createApiClient({ engine })
      const run = await enqueueCrawl(api.ctx.store, 2)
      const path = `/api/runs/${shortId(run)}/cancel`

      const planned = await api.post(path, { dryRun: true })
      const before = await statusOf(api, run)
      const done = await api.post(path, { because: 'wrong city list' })
      const after = await statusOf(api, run)
      const again = await api.post(path, {}, 409)
      await undoChange(api, done)

      assert.deepEqual([before, after, await statusOf(api, run)], ['queued', 'cancelled', 'queued'])
      assert.match(textOf(planned), /would be cancelled.* Nothing was changed\.$/)
      assert.equal(planned.undo, null)
      assert.match(textOf(done), /is cancelled; its data is kept\.$/)
      assert.equal(done.undo.command, `unstuck revert ${shortId(run)}`)
      assert.equal(again.error.code, 'REFUSED')
      const { items } = await api.get(`/api/history?run=${run}`)
      assert.deepEqual(items.map(({ action, because }: any) => [action, because])[1], [
        'cancel',
        'wrong city list',
      ])
      assert.match(items[1].actor, /^the-admin \(admin\) via http from 127\.0\.0\.1$/)
    })

    test('resume, retry, revert: each reports whether it can be undone', async () => {
      await using api = await createApiClient({ engine })
      const { store } = api.ctx
      const run = await enqueueSingle(store, 'a')
      await api.post(`/api/runs/${run}/cancel`)

      const resumed = await api.post(`/api/runs/${run}/resume`, {
        because: 'it was right after all',
      })
      await undoChange(api, resumed)
      const cancelledAgain = await statusOf(api, run)
      const retried = await api.post(`/api/runs/${run}/retry`)
      await undoChange(api, retried)
      const statuses = [
        cancelledAgain,
        await statusOf(api, run),
        await statusOf(api, retried.run.id),
      ]

      assert.deepEqual(statuses, ['cancelled', 'cancelled', 'cancelled'])
      assert.equal(retried.run.retryOf, run)

      const failing = await beginOne(store, await api.registerLiveWorker('b'), { source: 'b' })
      await store.fail([{ ...failing, error: 'x', becomes: 'failed' }])
      await store.settle(failing.run)
      const opened = await api.post(`/api/runs/${failing.run}/resume`)
      assert.deepEqual([opened.targets, opened.undo], [1, null])
      const live = await api.post(`/api/runs/${failing.run}/retry`)
      assert.equal(await statusOf(api, failing.run), 'failed')
      await undoChange(api, live)
      assert.equal(await statusOf(api, failing.run), 'interrupted')
      assert.equal(await statusOf(api, live.run.id), 'cancelled')
    })
  })
}

describe('reset-failed and unpark', { concurrency: 2 }, () => {
  test('failed ones go back in the queue by group and attempts; parked ones can be parked again', async () => {
    await using api = await createApiClient()
    const { store } = api.ctx
    const targets = ['CA', 'CA', 'TX', 'TX'].map((group, n) => ({ key: `t${n}`, group }))
    const run = await enqueueCrawl(store, targets)
    const worker = await api.registerLiveWorker('shop')
    for (let n = 0; n < 3; n++)
      await store.fail([
        { ...(await claimOne(store, worker)), error: 'HTTP 500', becomes: 'failed' },
      ])
    await store.fail([
      { ...(await claimOne(store, worker)), error: 'it took down 3 workers', becomes: 'parked' },
    ])
    await store.settle(run)

    const none = await api.post(`/api/runs/${run}/reset-failed`, { groups: ['NY'] })
    const one = await api.post(`/api/runs/${run}/reset-failed`, { groups: ['TX'], maxAttempts: 1 })
    const parked = await api.post(`/api/runs/${run}/unpark`)
    const back = (await listTargets(store, run)).map(({ status }) => status)
    await undoChange(api, parked)

    assert.deepEqual([none.targets, one.targets, one.undo, parked.targets], [0, 1, null, 1])
    assert.match(
      textOf(one),
      /^1 target of run \w{8} of \S+ is back in the queue, and the run is open again\. Work continues/,
    )
    assert.deepEqual(back, ['failed', 'failed', 'planned', 'planned'])
    const last = (await listTargets(store, run))[3]!
    assert.deepEqual([last.status, last.lastError], ['parked', 'it took down 3 workers'])
    const other = (await listTargets(store, await enqueueCrawl(store, 1, { source: 'other' })))[0]!
    const refused = await api.post(`/api/runs/${run}/unpark`, { targets: [other.id] }, 400)
    assert.match(refused.error.message, /is not one of run/)
  })
})

describe('delete', { concurrency: 2 }, () => {
  test('a run goes with its targets, files and, if asked, items; only by its words', async () => {
    await using api = await createApiClient()
    const { store, folder } = api.ctx
    const begun = await beginOne(store, await api.registerLiveWorker('a'), { source: 'a' })
    const saved = await savePage(store, begun, { items: makeItems(0, 3) })
    await store.finish([saved])
    await store.settle(begun.run)
    const { outputDir } = createRunFolder(folder, begun.run)
    writeFileSync(join(outputDir, 'a.json'), '{}')
    const path = `/api/runs/${begun.run}`
    const words = `delete ${shortId(begun.run)}`

    const planned = await api.del(path, { withItems: true, dryRun: true })
    const wrong = await api.del(path, { confirm: 'delete it', withItems: true }, 400)
    assert.ok(existsSync(outputDir))
    const gone = await api.del(path, { confirm: words, withItems: true })

    const contents = `1 target, 3 items, its files in ${planned.folders[0]}`
    const run = `Run ${shortId(begun.run)} of a with ${contents}`
    assert.equal(planned.summary, `${run} would be deleted for good. This cannot be undone.`)
    assert.deepEqual({ ...planned, dryRun: false, summary: `${run} is deleted.` }, gone)
    assert.equal(gone.undo, null)
    assert.deepEqual([gone.targets, gone.items, gone.folders.length], [1, 3, 1])
    assert.ok(wrong.error.message.includes(`"${words}"`))
    assert.ok(!existsSync(outputDir))
    assert.equal(await store.run(begun.run), null)
    assert.deepEqual(await itemsOf(store, 'a'), [])
    await api.get(path, 404)
  })

  test('a live run is not deleted', async () => {
    await using api = await createApiClient()
    const run = await enqueueCrawl(api.ctx.store, 1)

    const { error } = await api.del(`/api/runs/${run}`, { confirm: `delete ${shortId(run)}` }, 400)

    assert.match(error.message, /is not dead/)
    assert.equal(await statusOf(api, run), 'queued')
  })
})
