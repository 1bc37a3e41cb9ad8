import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { shortId, type RunId, type TargetId } from '../../../core/model/id.ts'
import type { Store } from '../../../core/store/store.ts'
import { open } from '../../../index.ts'
import { collectFacts } from '../../../features/alerts/facts.ts'
import { OrphanTracker } from '../../../presenters/orphan-alerts.ts'
import { acknowledge, findAcknowledgeable } from '../../../presenters/acknowledge.ts'
import { createApiClient, type ApiClient } from '../../../testing/api-client.ts'
import {
  claim,
  enqueueCrawl,
  listTargets,
  operatorContext,
  registerWorker,
} from '../../../testing/fixtures.ts'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import { sqliteEngine } from '../../../testing/sqlite-engine.ts'
import { unstuck } from '../../../testing/unstuck-cli.ts'

type Failed = { run: RunId; failed: TargetId[]; parked: TargetId }

/** A run that ended with two failed targets of the groups CA and TX, and a parked one. */
async function failedRun(api: ApiClient, source: string): Promise<Failed> {
  const { store } = api.ctx
  const targets = ['CA', 'TX', 'TX'].map((group, n) => ({ key: `${source}-${n}`, group }))
  const run = await enqueueCrawl(store, targets, { source })
  const worker = await api.registerLiveWorker(source)
  const claimed = await claim(store, worker, 3, { source })
  for (const [n, one] of claimed.entries()) {
    const becomes = n === 2 ? 'parked' : 'failed'
    await store.fail([{ ...one, error: `${becomes} by HTTP 403`, becomes }])
  }
  await store.settle(run)
  await store.retireWorker(worker)
  const all = await listTargets(store, run)
  const ids = (status: string): TargetId[] =>
    all.filter((target) => target.status === status).map(({ id }) => id)
  return { run, failed: ids('failed'), parked: ids('parked')[0]! }
}

/** What each way in reports about what needs attention. */
async function reports({ ctx, get }: ApiClient, run: RunId) {
  const cli = async (...args: string[]) =>
    unstuck([...args, '--json', '--db', ctx.database.url], { cwd: ctx.folder })
  const status = await cli('status')
  const shown = await cli('show', run)
  const { attention, severity } = await get('/api/overview')
  const letters = await get('/api/dead-letters')
  const acknowledged = await get('/api/dead-letters?acknowledged=true')
  const context = operatorContext(ctx.store)
  const { found } = await collectFacts(context, new OrphanTracker(0), [])
  return {
    exit: [status.code, JSON.parse(shown.stdout).severity],
    attention: attention.map((one: any) => one.what),
    inStatus: JSON.parse(status.stdout).attention.length,
    severity,
    letters: letters.total,
    acknowledged: acknowledged.total,
    alerts: found.map(({ rule }) => rule),
    ofRun: (await get(`/api/runs/${run}`)).acknowledged,
    isRun: (await get(`/api/runs/${run}`)).run.acknowledged,
  }
}

const OPEN = {
  exit: [3, 'attention'],
  attention: ['2 targets failed, 1 parked'],
  inStatus: 1,
  severity: 'attention',
  letters: 3,
  acknowledged: 0,
  alerts: ['parked'],
  ofRun: 0,
  isRun: false,
}
const SEEN = {
  exit: [0, 'ok'],
  attention: [],
  inStatus: 0,
  severity: 'ok',
  letters: 0,
  acknowledged: 3,
  alerts: [],
  ofRun: 3,
  isRun: true,
}

for (const engine of [sqliteEngine, postgresEngine]) {
  describe(engine.name, { concurrency: 2 }, () => {
    test('an acknowledged run no longer counts anywhere, and its undo makes it count again', async () => {
      await using api = await createApiClient({ engine })
      const { run } = await failedRun(api, 'shop')
      assert.deepEqual(await reports(api, run), OPEN)

      const path = `/api/runs/${run}/acknowledge`
      const preview = await api.post(path, { dryRun: true })
      assert.deepEqual([preview.targets, preview.undo], [3, null])
      assert.deepEqual(await reports(api, run), OPEN)
      const done = await api.post(path, { because: 'the site is gone' })
      assert.match(
        done.summary,
        /^Run \w{8} of shop, with 3 targets, is acknowledged: kept, and no longer counted/,
      )
      assert.deepEqual(await reports(api, run), SEEN)
      const { counts } = await api.get(`/api/runs/${run}`)
      assert.deepEqual([counts.failed, counts.parked], [2, 1], 'it is kept as it is')
      const [entry, ...more] = (await api.get('/api/history?action=acknowledge')).items
      assert.deepEqual([entry.run, entry.because, more], [run, 'the site is gone', []])

      for (const { path, body } of done.undo.calls) await api.post(path, body)
      assert.deepEqual(await reports(api, run), OPEN)
      const command = done.undo.command.split(' ').slice(1)
      assert.equal((await api.cli(...command)).summary, 'Nothing of it is acknowledged.')
    })

    test('a run of which only its own mark was left is acknowledged without an undo that does more or nothing', async () => {
      await using api = await createApiClient({ engine })
      const { run, failed, parked } = await failedRun(api, 'shop')
      const each = await api.post('/api/acknowledge', { targets: [...failed, parked] })
      const whole = await api.post(`/api/runs/${run}/acknowledge`)
      assert.match(whole.summary, /^Run \w{8} of shop is acknowledged/)
      assert.deepEqual([whole.targets, whole.undo], [0, null])
      for (const { path, body } of each.undo.calls) await api.post(path, body)
      assert.deepEqual(await reports(api, run), OPEN)
    })

    test('targets, groups of dead letters and sources are acknowledged, as the actions on them offer', async () => {
      await using api = await createApiClient({ engine })
      const { run, failed, parked } = await failedRun(api, 'shop')
      const offered = (await api.get(`/api/targets/${parked}`)).actions.find(
        ({ name }: any) => name === 'acknowledge',
      )
      await api.post(offered.call.path, offered.call.body)
      const afterOne = await reports(api, run)
      assert.deepEqual(
        [afterOne.attention, afterOne.alerts, afterOne.letters],
        [['2 targets failed'], [], 2],
      )
      const undo = (await api.get(`/api/targets/${parked}`)).actions.find(
        ({ name }: any) => name === 'acknowledge',
      )
      assert.equal(undo.label, 'Undo acknowledge')
      assert.equal(undo.command, `unstuck acknowledge ${shortId(parked)} --undo`)

      const [group] = (await api.get('/api/dead-letters')).groups
      const { call } = group.actions.find(({ name }: any) => name === 'acknowledge')
      const marked = await api.post(call.path, call.body)
      assert.equal(marked.targets, 2)
      assert.deepEqual(await reports(api, run), { ...SEEN, isRun: false })
      for (const { path, body } of marked.undo.calls) await api.post(path, body)
      assert.equal((await reports(api, run)).letters, 2)

      const other = await failedRun(api, 'other')
      const all = await api.cli('acknowledge', '--source', 'shop', '--yes')
      assert.equal(all.targets, 2)
      assert.deepEqual((await reports(api, run)).attention, ['2 targets failed, 1 parked'])
      const ca = await api.cli('acknowledge', other.run, '--group', 'CA')
      assert.equal(ca.targets, 1)
      assert.equal((await api.cli('acknowledge', '--all', '--yes')).targets, 2)
      assert.equal((await reports(api, other.run)).exit[0], 0)
      assert.equal((await api.cli('acknowledge', '--all', '--undo', '--yes')).targets, 6)
      assert.equal((await reports(api, other.run)).letters, 6)
      const named = { runs: [other.run], targets: failed }
      assert.equal((await api.post('/api/acknowledge', named)).targets, 5)
    })

    test('undo removes exactly the marks that the action has set', async () => {
      await using api = await createApiClient({ engine })
      const { store } = api.ctx
      const { run, failed, parked } = await failedRun(api, 'shop')
      const marked = async () =>
        (await listTargets(store, run))
          .filter((one) => one.acknowledgedAt !== null)
          .map(({ id }) => id)
      const undo = async ({ undo }: any) => {
        for (const { path, body } of undo.calls) await api.post(path, body)
      }
      await api.post('/api/acknowledge', { targets: [parked] })

      const whole = await api.post(`/api/runs/${run}/acknowledge`)
      assert.equal(whole.targets, 2)
      await undo(whole)
      assert.deepEqual(await marked(), [parked], 'it was acknowledged before')
      assert.equal((await store.run(run))!.acknowledgedAt, null)

      const group = await api.cli('acknowledge', run, '--group', 'CA')
      await api.cli(...group.undo.command.split(' ').slice(1))
      assert.deepEqual(await marked(), [parked])

      const again = await api.post(`/api/runs/${run}/acknowledge`, { undo: true })
      assert.deepEqual(await marked(), [])
      await undo(again)
      assert.deepEqual(await marked(), [parked], 'only what the undo had removed')
      assert.equal(
        (await api.post('/api/acknowledge', { targets: [parked, ...failed] })).targets,
        2,
      )
    })

    test('one target behind many acknowledged ones is listed', async () => {
      await using api = await createApiClient({ engine })
      const { store } = api.ctx
      const keys = Array.from({ length: 601 }, (_, n) => `t${n}`)
      const run = await enqueueCrawl(store, keys, { source: 'many' })
      const worker = await api.registerLiveWorker('many')
      const claimed = await claim(store, worker, 600, { source: 'many' })
      const fail = (all: typeof claimed) =>
        store.fail(all.map((one) => ({ ...one, error: 'HTTP 403', becomes: 'failed' as const })))
      await fail(claimed)
      const done = await api.post(`/api/runs/${run}/acknowledge`)
      assert.equal(done.targets, 600)
      await fail(await claim(store, worker, 1, { source: 'many' }))
      const { needsAttention } = await api.get(`/api/runs/${run}`)
      assert.deepEqual(
        needsAttention.map(({ key }: any) => key),
        ['t600'],
      )
    })

    test('what is planned again needs attention when it fails again, and revert works after an acknowledgement', async () => {
      await using api = await createApiClient({ engine })
      const { run } = await failedRun(api, 'shop')
      await api.post(`/api/runs/${run}/acknowledge`)
      await api.post(`/api/runs/${run}/reset-failed`)
      const again = await reports(api, run)
      assert.deepEqual([again.attention, again.acknowledged, again.isRun], [[], 1, false])

      await api.post(`/api/runs/${run}/cancel`)
      const parked = await api.post(`/api/runs/${run}/acknowledge`, { undo: true })
      assert.equal(parked.targets, 1)
      const { summary } = await api.post(`/api/runs/${run}/revert`)
      assert.match(summary, /^Reverted "cancel" on run/)
    })

    test('the library acknowledges runs, sources, targets and groups alike', async () => {
      await using api = await createApiClient({ engine })
      const { run, failed } = await failedRun(api, 'shop')
      await using unstuck = await open({ db: api.ctx.database.url, config: false })
      const severity = async () => (await unstuck.status()).severity
      assert.equal((await unstuck.acknowledge(run, { dryRun: true })).targets, 3)
      assert.equal(await severity(), 'attention')
      assert.equal((await unstuck.acknowledge(failed)).targets, 2)
      assert.equal((await unstuck.acknowledge({ source: 'shop' })).targets, 1)
      assert.equal(await severity(), 'ok')
      assert.equal((await unstuck.acknowledge(run, { undo: true, groups: ['CA'] })).targets, 1)
      assert.equal(await severity(), 'attention')
    })

    test('only what failed, is stuck or parked is acknowledged, and a refusal names the reason', async () => {
      await using api = await createApiClient({ engine })
      const run = await enqueueCrawl(api.ctx.store, 1, { source: 'live' })
      const [target] = await listTargets(api.ctx.store, run)
      const ofRun = await api.post(`/api/runs/${run}/acknowledge`, {}, 409)
      assert.match(ofRun.error.message, /is queued, and none of its targets is failed/)
      const ofTarget = await api.post(`/api/targets/${target!.id}/acknowledge`, {}, 409)
      assert.match(ofTarget.error.message, /is planned: only what is failed, stuck or parked/)
      await api.post('/api/acknowledge', {}, 400)
      const { actions } = await api.get(`/api/runs/${run}`)
      assert.ok(!actions.some(({ name }: any) => name === 'acknowledge'))
    })

    test('what can be acknowledged is found without a read of each dead letter and each run', async () => {
      await using api = await createApiClient({ engine })
      const { store } = api.ctx
      const runs = [(await failedRun(api, 'a')).run, (await failedRun(api, 'b')).run]
      const { run: acknowledged } = await failedRun(api, 'c')
      await api.post(`/api/runs/${acknowledged}/acknowledge`)
      let reads = 0
      const run: Store['run'] = (id) => (reads++, store.run(id))
      const deadLetters: Store['deadLetters'] = (filter) => (reads++, store.deadLetters(filter))
      const find = async (options: Parameters<typeof findAcknowledgeable>[1]) =>
        (await findAcknowledgeable({ ...store, run, deadLetters }, options)).map(({ id }) => id)

      assert.deepEqual((await find({ undo: false })).toSorted(), runs.toSorted())
      assert.deepEqual(await find({ source: 'b', undo: false }), [runs[1]])
      assert.deepEqual(await find({ undo: true }), [acknowledged])
      assert.equal(reads, 0)
    })

    test('targets whose run was deleted meanwhile are refused as unknown', async () => {
      await using api = await createApiClient({ engine })
      const { store } = api.ctx
      const { run, failed } = await failedRun(api, 'shop')
      const targets = [(await store.target(failed[0]!))!]
      await api.del(`/api/runs/${run}`, { confirm: `delete ${shortId(run)}` })
      const options = { undo: false, dryRun: false }
      await assert.rejects(acknowledge(operatorContext(store), { runs: [], targets }, options), {
        code: 'E_NOT_FOUND',
      })
    })

    test('a source that gave up is acknowledged with its last run', async () => {
      await using api = await createApiClient({ engine })
      const { store } = api.ctx
      const { run } = await failedRun(api, 'shop')
      const worker = await registerWorker(store, { source: 'shop' })
      await store.lockSource({ source: 'shop', worker, killTimeoutMs: 1_000, processTag: 'x' })
      await store.unlockSource({ source: 'shop', worker, gaveUp: 'it failed 5 times' })
      await store.retireWorker(worker)
      const before = await reports(api, run)
      assert.deepEqual(before.alerts.toSorted(), ['gave-up', 'parked'])
      assert.ok(before.attention.includes('gave up'))
      await api.post(`/api/runs/${run}/acknowledge`)
      assert.deepEqual(await reports(api, run), SEEN)
    })
  })
}
