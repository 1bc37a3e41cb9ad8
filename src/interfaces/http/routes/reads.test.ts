import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { shortId } from '../../../core/model/id.ts'
import { createApiClient, type ApiClient } from '../../../testing/api-client.ts'
import {
  beginOne,
  claim,
  claimOne,
  unwrap,
  enqueueSingle,
  savePage,
  makeItems,
  enqueueCrawl,
} from '../../../testing/fixtures.ts'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import { sqliteEngine } from '../../../testing/sqlite-engine.ts'

const HOUR_MS = 3_600_000

/** A crawl at work with trouble in two groups, one whose worker is gone, one dead, one resumable, and one that has ended. */
async function createRuns({ ctx, registerLiveWorker, registerDeadWorker }: ApiClient) {
  const { store, database } = ctx
  const dead = await enqueueCrawl(store, 3, { source: 'forgotten' })
  const begun = await beginOne(store, await registerLiveWorker('long'), { source: 'long' })
  const saved = await savePage(store, begun, { items: makeItems(0, 5), pageTarget: 9 })
  unwrap((await store.release([saved]))[0]!)
  await store.retireWorker(saved.worker)
  const done = await beginOne(store, await registerLiveWorker('over'), { source: 'over' })
  await store.finish([done])
  await store.settle(done.run)
  await database.advanceClock(25 * HOUR_MS)
  const targets = Array.from({ length: 8 }, (_, n) => ({
    key: `t${n}`,
    group: n % 2 ? 'CA' : 'TX',
  }))
  const live = await enqueueCrawl(store, targets, { source: 'busy' })
  const worker = await registerLiveWorker('busy')
  const [first, second, third] = await claim(store, worker, 3, { source: 'busy' })
  await savePage(store, first!, { items: makeItems(0, 2), skipped: 1, done: true })
  await store.fail([
    { ...second!, error: 'GET https://a.example/1 answered 403', becomes: 'failed' },
  ])
  await store.fail([{ ...third!, error: 'it took down 3 workers', becomes: 'parked' }])
  const orphaned = await enqueueCrawl(store, 2, { source: 'orphan' })
  const lost = await claimOne(store, await registerDeadWorker('orphan'), { source: 'orphan' })
  await savePage(store, lost)
  await enqueueSingle(store, 'queued')
  await store.takeSample()
  return { dead, resumable: saved.run, ended: done.run, live, orphaned, target: second!.target }
}

/** Ages go on between two looks. */
function withoutTimes(answer: unknown): unknown {
  const text = JSON.stringify(answer, (name, value: unknown) =>
    ['now', 'pace', 'ageMs', 'idleMs', 'heartbeatAgeMs', 'loopLagMs'].includes(name) ? 0 : value,
  )
  return JSON.parse(text.replaceAll(/just now|\d+(\.\d+)? (ms|s)( ago)?\b/g, 'N s'))
}

for (const engine of [sqliteEngine, postgresEngine]) {
  describe(engine.name, { concurrency: 2 }, () => {
    test('reads return what the command line prints, and match the schema', async () => {
      await using api = await createApiClient({ engine })
      const { dead, resumable, ended, live, orphaned, target } = await createRuns(api)
      const pairs: [path: string, args: string[]][] = [
        ['/api/recovery', ['recover', '--dry-run']],
        ['/api/recovery?source=orphan', ['recover', '--dry-run', '--source', 'orphan']],
        ['/api/clean', ['clean', '--dry-run']],
        ['/api/summary?age=1h', ['summary', '--age', '1h']],
        ['/api/summary', ['summary']],
        ['/api/check/busy', ['check', 'busy']],
        ['/api/check/long', ['check', 'long']],
        ['/api/check/nothing', ['check', 'nothing']],
        ['/api/history', ['history', '--limit', '50']],
        ['/api/workers', ['workers']],
        ['/api/overview', ['status']],
        [`/api/runs/${live}/explain`, ['explain', live]],
        [`/api/runs/${shortId(dead)}/explain`, ['explain', dead]],
        [`/api/runs/${live}`, ['show', live]],
        [`/api/runs/${ended}`, ['show', ended]],
        [`/api/runs/${live}/progress`, ['progress', live]],
        [`/api/runs/${live}/progress?by=page`, ['progress', live, '--by', 'page']],
        ['/api/runs?limit=20', ['runs']],
        ['/api/config', ['config', 'show']],
      ]
      // One engine is enough for those that are only read.
      const chosen = engine === sqliteEngine ? pairs : pairs.slice(0, 9)
      const compare = async ([path, args]: (typeof pairs)[number]): Promise<void> => {
        const [heard, printed] = await Promise.all([api.get(path), api.cli(...args)])
        const known = { ...printed, ...(args[0] === 'config' && { db: heard.db }) }
        assert.deepEqual(
          pickFields(withoutTimes(heard), withoutTimes(known)),
          withoutTimes(known),
          path,
        )
      }
      for (let n = 0; n < chosen.length; n += 5)
        await Promise.all(chosen.slice(n, n + 5).map(compare))

      const detail = await api.get(`/api/targets/${target}`)
      assert.deepEqual(
        withoutTimes(detail.explanation),
        withoutTimes(await api.cli('explain', target)),
      )
      assert.equal((await api.get('/api/overview')).state, 'stuck')
      const listed = await api.get(`/api/runs?status=live&q=${shortId(orphaned)}`)
      assert.deepEqual(
        listed.items.map(({ id, health, kind, planned, pages }: any) => [
          id,
          health,
          kind,
          planned,
          pages,
        ]),
        [[orphaned, 'orphaned', 'crawl', true, 1]],
      )
      assert.equal(
        (await api.get(`/api/runs/${resumable}`)).commands[2],
        `unstuck cancel ${shortId(resumable)}`,
      )
    })
  })
}

/** Only what the other one has too, in lists and below: the API may know more. */
function pickFields(answer: any, like: any): any {
  if (Array.isArray(answer))
    return answer.map((one, n) => (like?.[n] === undefined ? one : pickFields(one, like[n])))
  if (typeof answer !== 'object' || answer === null || typeof like !== 'object' || like === null)
    return answer
  return Object.fromEntries(
    Object.entries(answer)
      .filter(([name]) => name in like)
      .map(([name, value]) => [name, pickFields(value, like[name])]),
  )
}

describe('short ids and mistakes', { concurrency: 2 }, () => {
  test('a run is addressed by its full id or its last 8 digits; an invalid or unknown id is 404', async () => {
    await using api = await createApiClient()
    const run = await enqueueCrawl(api.ctx.store, ['a'])
    const [target] = (await api.get(`/api/runs/${shortId(run)}/targets`)).items

    assert.equal((await api.get(`/api/targets/${target.id}`)).target.id, target.id)
    assert.equal((await api.get('/api/runs/00000000', 404)).error.code, 'NOT_FOUND')
    assert.equal((await api.get(`/api/runs/${target.id}`, 404)).error.code, 'NOT_FOUND')
    assert.equal((await api.get('/api/runs/..%2fetc', 404)).error.code, 'NOT_FOUND')
    assert.match(
      (await api.get('/api/runs?state=live', 400)).error.message,
      /did you mean status\?/,
    )
    assert.match((await api.get('/api/runs?limit=501', 400)).error.message, /limit/)
    assert.match(
      (await api.get('/api/history?since=1e9', 400)).error.message,
      /since is not a duration/,
    )
  })

  test('where two ids end alike, both are named', async () => {
    await using api = await createApiClient()
    const { store } = api.ctx
    const ids = ['1', '2'].map((n) => `0192aa0e-5f13-7c33-9a5${n}-0242deadbeef`)
    for (const [n, id] of ids.entries()) {
      const policy = (await store.run(await enqueueSingle(store, `other-${n}`)))!.policy
      await store.enqueue({ id, source: `same-${n}`, kind: 'single', policy })
    }

    const { error } = await api.get('/api/runs/deadbeef', 400)

    for (const id of ids) assert.ok(error.message.includes(id), error.message)
  })

  test('a run can be queued, but not a second one of its source, nor by anything but a name', async () => {
    await using api = await createApiClient()

    const made = await api.post('/api/runs', { source: 'reports', input: { month: 10 } })

    assert.equal(made.status, 'queued')
    assert.deepEqual((await api.get(`/api/runs/${made.id}`)).run.input, { month: 10 })
    assert.equal(
      (await api.post('/api/runs', { source: 'reports' }, 409)).error.code,
      'ALREADY_RUNNING',
    )
    assert.equal(
      (await api.post('/api/runs', { source: 'a', command: ['id'] }, 400)).error.code,
      'BAD_REQUEST',
    )
    assert.match(
      (await api.post('/api/runs', { source: 'a', input: 'x'.repeat(100_001) }, 400)).error.message,
      /larger than 100 KB/,
    )
  })
})

test('a live run has a rate and an estimated end', async () => {
  await using api = await createApiClient()
  const { store, database } = api.ctx
  const run = await enqueueCrawl(store, 20)
  const worker = await api.registerLiveWorker('shop')
  const work = async (count: number): Promise<void> => {
    for (const claimed of await claim(store, worker, count))
      await savePage(store, claimed, { items: makeItems(0, 2, claimed.target), done: true })
  }
  await work(2)
  await database.advanceClock(60_000)
  const [young] = (await api.get('/api/runs?status=live')).items
  await store.takeSample()
  await database.advanceClock(4 * 60_000)
  await store.heartbeat({ worker, claimIds: [], loopLagMs: 0 })
  await work(8)

  const [old] = (await api.get('/api/runs?status=live')).items
  const { run: shown } = await api.get(`/api/runs/${run}`)

  assert.deepEqual(young.pace.pagesPerMinute, 2)
  assert.deepEqual(old.pace, {
    pagesPerMinute: 2,
    itemsPerMinute: 4,
    etaSeconds: old.pace.etaSeconds,
  })
  assert.ok(old.pace.etaSeconds.from < 300 && old.pace.etaSeconds.to > 300)
  assert.deepEqual(shown.pace.pagesPerMinute, 2)
})
