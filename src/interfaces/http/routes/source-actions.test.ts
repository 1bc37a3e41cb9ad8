import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { newId } from '../../../core/model/id.ts'
import { DEFAULT_POLICY } from '../../../core/model/policy.ts'
import { open } from '../../../index.ts'
import { collectFacts } from '../../../features/alerts/facts.ts'
import { OrphanTracker } from '../../../presenters/orphan-alerts.ts'
import { SOURCE_STORE } from '../../../features/sources/store/store.ts'
import { createApiClient } from '../../../testing/api-client.ts'
import {
  claimOne,
  enqueueCrawl,
  enqueueSingle,
  operatorContext,
  registerWorker,
} from '../../../testing/fixtures.ts'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import { sqliteEngine } from '../../../testing/sqlite-engine.ts'
import { unstuck } from '../../../testing/unstuck-cli.ts'

const names = (actions: { name: string }[]): string[] => actions.map(({ name }) => name)

for (const engine of [sqliteEngine, postgresEngine]) {
  describe(engine.name, { concurrency: 2 }, () => {
    test('a paused source is ok for every interface, and its undo ends the pause', async () => {
      await using api = await createApiClient({ engine })
      const { store, database } = api.ctx
      const run = await enqueueCrawl(store, 3, { source: 'portal-a' })
      const dead = await api.registerDeadWorker('portal-a')
      await claimOne(store, dead, { source: 'portal-a' })
      await store.retireWorker(dead)
      assert.equal((await api.get('/api/overview')).severity, 'stuck')
      const shown = await api.get(`/api/runs/${run}`)
      assert.deepEqual(names(shown.source.actions), ['pause'])

      const path = '/api/sources/portal-a/pause'
      const preview = await api.post(path, { dryRun: true })
      assert.match(preview.summary, /would be paused.*1 target in progress/)
      assert.equal((await api.get(`/api/runs/${run}`)).source.paused, null)
      const done = await api.post(path, { because: 'their site is down' })
      assert.equal(done.undo.command, 'unstuck unpause portal-a')
      const again = await api.post(path)
      assert.deepEqual([again.count, again.undo], [0, null])

      const overview = await api.get('/api/overview')
      assert.deepEqual([overview.severity, overview.attention], ['ok', []])
      assert.match(overview.summary, /1 run paused/)
      assert.equal(overview.runs[0].health, 'paused')
      const [source] = overview.sources
      assert.deepEqual(
        [source.source, source.paused.because, names(source.actions)],
        ['portal-a', 'their site is down', ['unpause']],
      )
      const cli = async (...args: string[]) =>
        unstuck([...args, '--db', database.url], { cwd: api.ctx.folder })
      for (const command of [
        ['status'],
        ['summary'],
        ['recover', '--dry-run'],
        ['alerts', 'list'],
      ]) {
        const { code, stdout, stderr } = await cli(...command)
        assert.equal(code, 0, `${command.join(' ')}: ${stdout}${stderr}`)
      }
      assert.match((await cli('status')).stdout, /Paused: portal-a, .*: their site is down/)
      const check = await cli('check', 'portal-a', '--json')
      const { action, paused } = JSON.parse(check.stdout)
      assert.deepEqual([check.code, action, paused.because], [5, 'wait', 'their site is down'])
      const { found } = await collectFacts(operatorContext(store), new OrphanTracker(0), [])
      assert.deepEqual(found, [])
      const { body: metrics } = await api.ctx.call('GET', '/metrics', { as: 'admin' })
      assert.match(metrics, /unstuck_live_runs\{[^}]*health="paused"[^}]*\} 1/)
      const history = await api.get('/api/history')
      assert.deepEqual(
        [history.items[0].action, history.items[0].run, history.items[0].source],
        ['pause', null, 'portal-a'],
      )

      for (const { path: undo, body } of done.undo.calls) await api.post(undo, body)
      assert.equal((await api.get('/api/overview')).severity, 'stuck')
    })

    test('a source is queued again, waits while it is paused, and runs now only if a supervisor waits', async () => {
      await using api = await createApiClient({ engine })
      const { store } = api.ctx
      const sources = await store.extend(SOURCE_STORE)
      await enqueueSingle(store, 'nightly')
      await api.post('/api/runs/nightly/cancel')
      const { source } = await api.get('/api/runs/nightly')
      assert.deepEqual(names(source.actions), ['enqueue', 'pause'])
      const none = await api.post('/api/sources/nightly/run-now', {}, 404)
      assert.match(none.error.message, /unstuck run nightly -- COMMAND.*unstuck enqueue nightly/)

      await api.post('/api/sources/nightly/pause', { because: 'maintenance' })
      const last = await api.get('/api/runs/nightly')
      assert.match(JSON.stringify(last.sections), /source +paused now: maintenance/)
      const explained = await api.get('/api/runs/nightly/explain')
      assert.match(JSON.stringify(explained.sections), /Its source: paused now: maintenance\./)
      const queued = await api.post('/api/sources/nightly/enqueue')
      assert.match(queued.summary, /is queued\. It waits until `unstuck unpause nightly`/)
      assert.equal(queued.run.status, 'queued')
      await api.post('/api/sources/nightly/enqueue', {}, 409)
      await api.post(queued.undo.calls[0].path)
      await api.post('/api/sources/nightly/unpause')

      const worker = await registerWorker(store, { source: 'nightly', leaseMs: 600_000 })
      await store.lockSource({ source: 'nightly', worker, killTimeoutMs: 1_000, processTag: 'x' })
      await sources.setNextStart('nightly', 3_600_000)
      const waiting = await api.get('/api/overview')
      assert.ok(Date.parse(waiting.sources[0].nextStartAt) > Date.parse(waiting.now))
      assert.match(waiting.sources[0].nextStartAt, /:\d\d\.000Z$/)
      assert.deepEqual(names(waiting.sources[0].actions), ['run-now', 'pause'])
      const supervised = await api.post('/api/sources/nightly/enqueue')
      assert.match(
        supervised.summary,
        /is queued\. Its supervisor starts it in 60 min; `unstuck run-now nightly` starts it now\./,
      )
      const { sections } = await api.get('/api/overview')
      assert.match(
        JSON.stringify(sections),
        /Wrapped: nightly, .* Its supervisor starts it in 60 min/,
      )
      await api.post(supervised.undo.calls[0].path)
      assert.match((await api.post('/api/sources/nightly/run-now')).summary, /starts it now/)
      assert.equal((await sources.sourceStates(['nightly']))[0]!.isRunNow, true)

      // The supervisor was killed: what it left behind counts for nothing.
      await store.unlockSource({ source: 'nightly', worker })
      assert.deepEqual((await api.get('/api/overview')).sources, [])
      await api.post('/api/sources/nightly/run-now', {}, 404)
      await api.post('/api/sources/nightli/pause', {}, 404)
    })

    test('the path of a file is no source that is queued, through HTTP or the library', async () => {
      await using api = await createApiClient({ engine })
      await using client = await open({ db: api.ctx.database.url, config: false })
      for (const path of ['./crowl', 'crowl.ts']) {
        const { error } = await api.post('/api/runs', { source: path }, 400)
        assert.match(error.message, /is the path of a file, not the name of a source/)
        await assert.rejects(client.enqueue(path), { code: 'E_USAGE' })
      }
      assert.deepEqual((await api.get('/api/runs')).items, [])
    })

    test('a crawl is queued with the policy of its last run, for the worker that plans it', async () => {
      await using api = await createApiClient({ engine })
      const { store } = api.ctx
      await enqueueCrawl(store, 2, { source: 'shop' })
      await api.post('/api/runs/shop/cancel')
      const { run } = await api.post('/api/sources/shop/enqueue')
      const { kind, plannedAt, status } = (await store.run(run.id))!
      assert.deepEqual([kind, plannedAt, status], ['crawl', null, 'queued'])
      const work = {
        command: 'unstuck work shop.ts --drain --no-start',
        folder: '/srv',
        host: 'web1',
      }
      await (await store.extend(SOURCE_STORE)).setLastWork('shop', work)
      const { error } = await api.post('/api/sources/shop/run-now', {}, 404)
      assert.match(error.message, /unstuck work shop\.ts --drain`/)
    })

    test('a command is queued with the input of its last run and the policy of the config', async () => {
      await using api = await createApiClient({ engine })
      const { store } = api.ctx
      const input = { month: '2026-10', note: 'x'.repeat(2_000) }
      const policy = { ...DEFAULT_POLICY, retries: 99 }
      await store.enqueue({ id: newId(), source: 'report', kind: 'single', policy, input })
      await api.post('/api/runs/report/cancel')

      const { run, command } = await api.post('/api/sources/report/enqueue')

      const queued = (await store.run(run.id))!
      assert.deepEqual([queued.input, queued.policy.retries], [input, DEFAULT_POLICY.retries])
      assert.equal(command, `unstuck enqueue report '--input=${JSON.stringify(input)}'`)
    })

    test('no interface queues a run for a crawler that starts its own', async () => {
      await using api = await createApiClient({ engine })
      const { store, database, folder } = api.ctx
      const own = { id: newId(), source: 'shop', kind: 'crawl', policy: DEFAULT_POLICY } as const
      await store.enqueue({ ...own, profile: 'requests' })
      await api.post('/api/runs/shop/cancel')

      for (const [path, body] of [
        ['/api/sources/shop/enqueue', {}],
        ['/api/runs', { source: 'shop' }],
      ] as const) {
        const { error } = await api.post(path, body, 409)
        assert.match(error.message, /Only its own program can start shop\./)
      }
      const { code, stderr } = await unstuck(['enqueue', 'shop', '--db', database.url], {
        cwd: folder,
      })
      assert.equal(code, 1)
      assert.match(stderr, /E_REFUSED: Only its own program can start shop\./)
      const none = await api.post('/api/sources/shop/run-now', {}, 404)
      assert.match(none.error.message, /Only its own program can start shop\.$/)
    })

    test('the library pauses and unpauses, and begins nothing meanwhile', async () => {
      await using api = await createApiClient({ engine })
      await enqueueSingle(api.ctx.store, 'tenders')
      await using client = await open({ db: api.ctx.database.url })
      const paused = await client.pause('tenders', { because: 'a holiday' })
      assert.equal(paused.undo!.command, 'unstuck unpause tenders')
      const check = await client.check('tenders')
      assert.deepEqual([check.action, check.paused!.because], ['wait', 'a holiday'])
      await assert.rejects(client.begin('tenders'), { code: 'E_SOURCE_PAUSED' })
      await assert.rejects(client.runNow('tenders'), { code: 'E_REFUSED' })
      assert.equal((await client.status()).sources.length, 1)
      await client.unpause('tenders')
      await using run = await client.begin('tenders')
      await run.succeed()
    })
  })
}
