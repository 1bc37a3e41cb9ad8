import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createApiClient, type ApiClient, textOf } from '../../../testing/api-client.ts'
import { listTargets, claimOne, savePage, enqueueCrawl } from '../../../testing/fixtures.ts'

async function statuses({ ctx }: ApiClient, run: string): Promise<string[]> {
  return (await listTargets(ctx.store, run)).map(({ status }) => status)
}

describe('targets', { concurrency: 2 }, () => {
  test('targets are parked even while claimed, and the undo restores open ones', async () => {
    await using api = await createApiClient()
    const { store } = api.ctx
    const run = await enqueueCrawl(store, 2)
    const other = await enqueueCrawl(store, 1, { source: 'other' })
    await claimOne(store, await api.registerLiveWorker('shop'))
    const targets = [...(await listTargets(store, run)), ...(await listTargets(store, other))]

    const planned = await api.post('/api/targets/park', {
      targets: targets.map(({ id }) => id),
      dryRun: true,
    })
    const before = await statuses(api, run)
    const parked = await api.post('/api/targets/park', {
      targets: targets.map(({ id }) => id),
      because: 'moved',
    })
    const during = await statuses(api, run)
    for (const { path, body } of parked.undo.calls) await api.post(path, body)

    assert.deepEqual([planned.targets, parked.targets, parked.run], [3, 3, null])
    assert.deepEqual(
      [before, during],
      [
        ['in_progress', 'planned'],
        ['parked', 'parked'],
      ],
    )
    assert.match(
      textOf(parked),
      /^3 targets are parked\. No other target of run \w{8} was open: it is failed now\./,
    )
    assert.equal(parked.undo.calls.length, 2)
    assert.deepEqual(await statuses(api, run), ['planned', 'planned'])
    assert.deepEqual(await statuses(api, other), ['planned'])
    assert.ok(['queued', 'interrupted'].includes((await store.run(run))!.status))
  })

  test('a target goes by its full id alone', async () => {
    await using api = await createApiClient()
    const run = await enqueueCrawl(api.ctx.store, 1)
    const { id } = (await listTargets(api.ctx.store, run))[0]!

    await api.get(`/api/targets/${id}`)
    const short = await api.get(`/api/targets/${id.slice(-8)}`, 404)
    const some = await api.post('/api/targets/park', { targets: [id.slice(-8)] }, 400)

    for (const { error } of [short, some]) assert.match(error.message, /full id/)
  })

  test('one is parked, unparked and reset; an action that does not apply is rejected with the right one', async () => {
    await using api = await createApiClient()
    const { store } = api.ctx
    const run = await enqueueCrawl(store, 2)
    const failed = await claimOne(store, await api.registerLiveWorker('shop'))
    await store.fail([{ ...failed, error: 'HTTP 500', becomes: 'failed' }])
    const at = (verb: string): string => `/api/targets/${failed.target}/${verb}`

    const parked = await api.post(at('park'), { because: 'later' })
    const wrong = await api.post(at('reset'), {}, 409)
    const back = await api.post(at('unpark'))
    const nothing = await api.post(at('reset'), {}, 409)

    // It had failed: put back in the queue it would not be what it was.
    assert.equal(parked.undo, null)
    assert.match(wrong.error.message, /unstuck unpark/)
    assert.deepEqual([back.targets, back.run.id], [1, run])
    assert.match(nothing.error.message, /is planned: there is nothing to reset/)
    const again = await claimOne(store, failed.worker)
    await store.fail([{ ...again, error: 'HTTP 500', becomes: 'failed' }])
    assert.equal((await api.post(at('reset'), { dryRun: true })).targets, 1)
    assert.equal((await api.post(at('reset'))).targets, 1)
    assert.deepEqual(await statuses(api, run), ['planned', 'planned'])
  })

  test('rewind goes back and nowhere else, and has no undo', async () => {
    await using api = await createApiClient()
    const { store } = api.ctx
    await enqueueCrawl(store, 1)
    const worker = await api.registerLiveWorker('shop')
    const saved = await savePage(store, await savePage(store, await claimOne(store, worker)))
    const path = `/api/targets/${saved.target}/rewind`

    const { actions } = await api.get(`/api/targets/${saved.target}`)
    const offered = actions.find((action: { name: string }) => action.name === 'rewind')
    assert.deepEqual([offered.call.body, offered.fields], [{ to: 0 }, []], 'as it is accepted')
    const planned = await api.post(path, { to: 0, dryRun: true })
    const [ahead, unknown] = [
      await api.post(path, { to: 3 }, 400),
      await api.post(path, { to: 1 }, 409),
    ]
    const done = await api.post(path, {
      to: 1,
      next: 'https://shop.example/?page=2',
      cursor: { a: 1 },
    })

    assert.match(
      textOf(planned),
      /would be rewound from page 2 to page 0.*A rewind cannot be reverted\. Nothing was changed\.$/,
    )
    assert.match(ahead.error.message, /it can only go back/)
    assert.match(unknown.error.message, /The address of page 2 is not stored/)
    assert.deepEqual([done.targets, done.undo], [1, null])
    const { target } = await api.get(`/api/targets/${saved.target}`)
    assert.deepEqual([target.page, target.status, target.cursor], [1, 'planned', { a: 1 }])
  })
})
