import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createApiClient } from '../testing/api-client.ts'
import { claimOne, enqueueCrawl, listTargets } from '../testing/fixtures.ts'
import type { AllowedAction } from './allowed-actions.ts'
import { cleanAction, recoverAction, unstickAction } from './bulk-actions.ts'

test('a selection is sent with the preview and with the action', () => {
  const some = { timeout: '60m', sources: ['a b', 'c'], groups: ['CA'] }
  const { call, command } = recoverAction(some)
  assert.equal(call.preview, '/api/recovery?timeout=60m&source=a+b&source=c&group=CA')
  assert.deepEqual(call.body, some)
  assert.match(
    command,
    /^unstuck recover --yes --timeout=60m '--source=a b' --source=c --group=CA$/,
  )
  assert.deepEqual(recoverAction({}).call.body, {})
  assert.equal(recoverAction({}).call.preview, '/api/recovery')
  // There is no GET for named runs: the preview is a dry run.
  assert.equal(cleanAction({ runs: ['x'] }).call.preview, null)
})

test('runs that had an owner are recovered, runs that never had one are cleaned', () => {
  assert.equal(unstickAction(['healthy', 'orphaned', 'dead']).name, 'recover')
  assert.equal(unstickAction(['healthy', 'stalled', 'dead']).name, 'clean')
  assert.equal(unstickAction(['stalled']).name, 'recover')
})

test('a listed call is accepted as it is, first as a dry run; only what cannot be reverted always asks for text', async () => {
  await using api = await createApiClient()
  const { ctx, registerLiveWorker } = api
  const run = await enqueueCrawl(ctx.store, 2)
  const worker = await registerLiveWorker('shop')
  const claim = await claimOne(ctx.store, worker)
  await ctx.store.fail([{ ...claim, error: 'HTTP 500', becomes: 'failed' }])
  const [target] = (await listTargets(ctx.store, run)).filter(({ status }) => status === 'failed')
  const offered: AllowedAction[] = [
    ...(await api.get(`/api/runs/${run}`)).actions,
    ...(await api.get(`/api/targets/${target!.id}`)).actions,
  ]
  assert.deepEqual(
    offered.map(({ name }) => name),
    ['reset-failed', 'acknowledge', 'cancel', 'reset', 'acknowledge', 'park'],
  )
  for (const { call, confirm } of offered) {
    assert.equal(confirm.always, false)
    const { status } = await ctx.call(call.method, call.path, {
      as: 'operator',
      body: { ...call.body, dryRun: true },
    })
    assert.equal(status, 200, call.path)
  }
  await api.post(`/api/runs/${run}/cancel`)
  const ended: AllowedAction[] = (await api.get(`/api/runs/${run}`)).actions
  const remove = ended.find(({ name }) => name === 'delete')!
  assert.deepEqual(remove.confirm, { text: `delete ${run.slice(-8)}`, always: true })
  const { call, fields } = remove
  const body = { ...call.body, ...Object.fromEntries(fields.map(({ name }) => [name, false])) }
  assert.equal((await ctx.call(call.method, call.path, { as: 'admin', body })).status, 200)
})
