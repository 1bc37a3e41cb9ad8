import assert from 'node:assert/strict'
import { mkdirSync, appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { StoreUnavailableError } from '../../../core/model/errors.ts'
import { newId } from '../../../core/model/id.ts'
import { createRunFolder } from '../../../lib/files/data-folder.ts'
import { LogFile } from '../../../features/commands/log-file.ts'
import type { Store } from '../../../core/store/store.ts'
import {
  recoverWorker,
  claimOne,
  registerWorker,
  enqueueSingle,
  savePage,
  enqueueCrawl,
} from '../../../testing/fixtures.ts'
import { EventReader } from '../../../testing/event-reader.ts'
import { createHttpTestContext, type HttpTestContext } from '../../../testing/http-test-context.ts'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import { sqliteEngine } from '../../../testing/sqlite-engine.ts'
import { removeToken, tokensPath } from '../../../app/tokens.ts'
import { assertDocumented } from '../../../testing/open-api.ts'

type AsRole = 'viewer' | 'operator'

function listen(
  { url, tokens }: HttpTestContext,
  topics: string,
  headers: Record<string, string> = {},
  as: AsRole = 'viewer',
): Promise<EventReader> {
  const authorization = `Bearer ${tokens[as]}`
  return EventReader.open(`${url}/api/events?topics=${topics}`, { authorization, ...headers })
}

/** Listens to the trail, and is heard of: topics are begun in their order. */
async function listening(ctx: HttpTestContext, headers = {}): Promise<EventReader> {
  const tab = await listen(ctx, 'trail,overview', headers)
  await tab.next('overview')
  return tab
}

async function cancel(store: Store, because: string): Promise<void> {
  const run = await enqueueSingle(store, `s-${newId()}`)
  const request = { actor: 'a person', because, action: 'cancel', evidence: null }
  await store.moveRun({ run, to: 'cancelled', expected: {}, ...request })
}

function texts({ data }: { data: { lines: { text: string }[] } }): string[] {
  return data.lines.map(({ text }) => text)
}

// They mostly wait, each for a server of its own.
suite('live events', { concurrency: true }, () => {
  for (const engine of [sqliteEngine, postgresEngine]) {
    test(`${engine.name}: each topic is sent at once, and again when it has changed`, async () => {
      await using ctx = await createHttpTestContext({ engine })
      const { store } = ctx
      const run = await enqueueCrawl(store, 3)
      const me = await registerWorker(store, { leaseMs: 600_000 })
      await using tab = await listen(ctx, `overview,run:${run},workers,trail`)
      const first = await tab.next('overview')
      assertDocumented('Overview', first.data)
      assert.equal(first.data.runs[0].pages, 0)
      const detail = await tab.next('run')
      assertDocumented('RunDetail', detail.data)
      const workerViews = await tab.next('workers')
      for (const one of workerViews.data.items) assertDocumented('Worker', one)
      assert.equal(workerViews.data.items[0].id, me)

      const claimed = await savePage(store, await claimOne(store, me))
      await tab.next('overview', ({ runs }) => runs[0].pages === 1)
      await tab.next('run', ({ run }) => run.pages === 1)
      await recoverWorker(store, me)
      const told = await tab.next('trail')
      assertDocumented('AuditEntry', told.data)
      assert.equal(told.id, String(told.data.id))
      assert.equal(told.data.target, claimed.target)
    })
  }

  test('nothing is sent while nothing changes, and many tabs share one read', async () => {
    let looks = 0
    await using ctx = await createHttpTestContext({ tokens: false })
    const { store } = ctx
    await enqueueSingle(store)
    await using counting = await createHttpTestContext({
      tokens: false,
      app: { open: async () => ({ ...store, runTotals: () => (looks++, store.runTotals()) }) },
    })
    const startedAt = performance.now()
    const seconds = () => (performance.now() - startedAt) / 1_000
    const tabs = await Promise.all(
      Array.from({ length: 30 }, () =>
        EventReader.open(`${counting.url}/api/events?topics=overview`),
      ),
    )
    for (const tab of tabs) await tab.next('overview')
    while (looks < 3) await sleep(50)
    assert.ok(looks <= seconds() + 2, `${looks} looks in ${seconds()} s`)
    await cancel(store, 'so that there is news')
    for (const tab of tabs) {
      await tab.next('overview')
      assert.equal(tab.text.split('event: overview').length - 1, 2, 'told once more than needed')
    }
    for (const tab of tabs) await tab[Symbol.asyncDispose]()
    // The server notices a moment later that no client listens any more.
    let before = -1
    for (let tries = 0; looks !== before && tries < 10; tries++) {
      before = looks
      await sleep(1_500)
    }
    assert.equal(looks, before, 'it reads though no client listens')
  })

  test('a client that was disconnected gets the missed events, once and in order', async () => {
    await using ctx = await createHttpTestContext()
    const { store } = ctx
    await using before = await listening(ctx)
    await cancel(store, 'one')
    const { id } = await before.next('trail')
    await before[Symbol.asyncDispose]()
    for (const because of ['two', 'three', 'four']) await cancel(store, because)
    await using again = await listen(ctx, 'trail', { 'last-event-id': id! })
    const heard = [await again.next('trail'), await again.next('trail'), await again.next('trail')]
    assert.deepEqual(
      heard.map(({ data }) => data.because),
      ['two', 'three', 'four'],
    )
    await cancel(store, 'five')
    assert.equal((await again.next('trail')).data.because, 'five')
    await using odd = await listening(ctx, { 'last-event-id': '../x' })
    await cancel(store, 'six')
    assert.equal((await odd.next('trail')).data.because, 'six')
  })

  test('the log of a command and that of a crawl are sent line by line', async () => {
    await using ctx = await createHttpTestContext()
    const { store, folder } = ctx
    const single = await enqueueSingle(store, 'wrapped')
    const log = new LogFile(createRunFolder(folder, single).logPath)
    log.write('out', ['one', 'two'])
    const crawl = await enqueueCrawl(store, 1)
    await using tab = await listen(ctx, `log:${single}`)
    const first = await tab.next('log')
    assertDocumented('LogPage', first.data)
    assert.ok(first.data.anew)
    assert.deepEqual(texts(first), ['one', 'two'])
    log.write('err', ['three'])
    const second = await tab.next('log')
    assert.deepEqual([second.data.anew, texts(second)], [false, ['three']])
    // Who comes later sees what the others have seen, and then the same as they.
    await using other = await listen(ctx, `log:${single}`)
    assert.deepEqual(texts(await other.next('log')), ['one', 'two', 'three'])
    log.write('out', ['four'])
    for (const one of [tab, other]) assert.deepEqual(texts(await one.next('log')), ['four'])

    await using crawling = await listen(ctx, `log:${crawl}`)
    assert.match((await crawling.next('log')).data.because, /has not started yet/)
    mkdirSync(join(folder, 'journal'))
    const me = newId()
    const event = {
      time: new Date(),
      worker: me,
      type: 'page_complete',
      run: crawl,
      key: 'a',
      page: 1,
      items: 2,
    }
    appendFileSync(join(folder, 'journal', `${me}.jsonl`), `${JSON.stringify(event)}\n`)
    const line = await crawling.next('log', ({ lines }) => lines.length > 0)
    assert.deepEqual(texts(line), ['a: page 1 saved with 2 items'])
    assert.equal(line.data.lines[0].raw, 'page_complete key=a page=1 items=2')
  })

  test('clients are notified when the database is unreachable and when it is back', async () => {
    let isAway = false
    await using real = await createHttpTestContext()
    const guarded = new Proxy(real.store, {
      get: (store, name: keyof Store) => {
        const verb = store[name]
        if (typeof verb !== 'function') return verb
        return isAway
          ? () => Promise.reject(new StoreUnavailableError('postgres://me:hunter2@db is away'))
          : verb
      },
    })
    await using ctx = await createHttpTestContext({ app: { open: async () => guarded } })
    await using tab = await listen(ctx, 'overview')
    await tab.next('overview')
    isAway = true
    const trouble = await tab.next('trouble')
    assert.match(trouble.data.message, /is away/)
    assert.match(trouble.data.since, /^\d{4}-/)
    assert.doesNotMatch(tab.text, /hunter2/)
    await using late = await listen(ctx, 'overview')
    await late.next('trouble')
    isAway = false
    await late.next('overview')
    for (const one of [tab, late]) await one.next('back')
  })

  test('a stream ends with the right to it, and with the server', async () => {
    const ctx = await createHttpTestContext()
    const tab = await listen(ctx, 'overview')
    const other = await listen(ctx, 'overview', {}, 'operator')
    await Promise.all([tab.next('overview'), other.next('overview')])
    removeToken(tokensPath(ctx.folder), 'the-viewer')
    await tab.end(5_000)
    const ended = other.end(5_000)
    await ctx[Symbol.asyncDispose]()
    await ended
  })

  test('a caller has 20 streams at most; wrong topics are refused by name', async () => {
    await using ctx = await createHttpTestContext()
    const tabs = await Promise.all(Array.from({ length: 20 }, () => listen(ctx, 'trail')))
    const refused = await ctx.call('GET', '/api/events?topics=trail', { as: 'viewer' })
    assert.equal(refused.status, 429)
    assert.equal(refused.headers.get('retry-after'), '10')
    await using another = await listen(ctx, 'trail', {}, 'operator')
    assert.ok(another)
    await tabs[0]![Symbol.asyncDispose]()
    for (let tries = 0; ; tries++) {
      const again = await fetch(`${ctx.url}/api/events?topics=trail`, {
        headers: { authorization: `Bearer ${ctx.tokens.viewer}` },
      })
      await again.body!.cancel()
      if (again.status === 200) break
      assert.ok(tries < 3_000, 'the place of one who left is never free')
      await sleep(50)
    }
    for (const tab of tabs) await tab[Symbol.asyncDispose]()
    for (const topics of [
      '',
      'x',
      'run:',
      'run:../../etc',
      'overview:1',
      'log:zz',
      'overview,nope',
    ]) {
      const { status, body } = await ctx.call('GET', `/api/events?topics=${topics}`, {
        as: 'viewer',
      })
      assert.equal(status, 400, topics)
      assert.match(body.error.message, /there is no topic/)
    }
    const many = Array.from({ length: 11 }, () => `run:${newId()}`).join(',')
    assert.equal(
      (await ctx.call('GET', `/api/events?topics=${many}`, { as: 'viewer' })).status,
      400,
    )
    assert.equal((await ctx.call('GET', '/api/events?topics=trail')).status, 401)
  })
})
