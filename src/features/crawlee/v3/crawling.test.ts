import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import { after, before, beforeEach, describe, test } from 'node:test'
import {
  BasicCrawler,
  Configuration,
  Dataset,
  log,
  RequestQueue,
  type BasicCrawlerOptions,
} from '@crawlee/cheerio'
import { createHandler } from '../../../http.ts'
import { open } from '../../../index.ts'
import type { Run } from '../../../core/model/run.ts'
import { resetFailed } from '../../../operator/actions.ts'
import { rewind } from '../../../presenters/target-actions.ts'
import type { Store } from '../../../core/store/store.ts'
import { isLong } from '../../../testing/long-tests.ts'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import { sqliteEngine } from '../../../testing/sqlite-engine.ts'
import { unstuck as unstuckCommand } from '../../../testing/unstuck-cli.ts'
import type { TestDatabase } from '../../../testing/test-database.ts'
import { crawleeStorage, type CrawleeStorage, type CrawleeStorageOptions } from './storage.ts'

log.setLevel(log.LEVELS.OFF)

for (const engine of isLong ? [sqliteEngine, postgresEngine] : [sqliteEngine]) {
  describe(`a crawl of Crawlee on ${engine.name}`, () => {
    let database: TestDatabase
    let store: Store
    let said: string[] = []
    before(async () => {
      database = await engine.fresh()
      store = await database.open()
    })
    after(() => database[Symbol.asyncDispose]())
    beforeEach(() => (said = []))

    const openStorage = (options: CrawleeStorageOptions = {}): Promise<CrawleeStorage> =>
      crawleeStorage({ db: database.url, log: (line) => said.push(line), ...options })

    /** A crawler as any other, on a queue and a dataset of its own. */
    async function makeCrawler(
      storage: CrawleeStorage,
      name: string,
      options: BasicCrawlerOptions,
    ): Promise<{ crawler: BasicCrawler; dataset: Dataset; queue: RequestQueue }> {
      const config = new Configuration({ storageClient: storage, purgeOnStart: false })
      const queue = await RequestQueue.open(name, { config })
      const dataset = await Dataset.open(name, { config })
      const crawler = new BasicCrawler(
        { requestQueue: queue, maxConcurrency: 5, ...options },
        config,
      )
      return { crawler, dataset, queue }
    }

    const urls = (count: number): string[] =>
      Array.from({ length: count }, (_, n) => `https://site.example/${n}`)

    async function runOf(name: string): Promise<Run> {
      const { items } = await store.runs({ source: `crawlee/${name}`, limit: 1 })
      return items[0]!
    }

    test('data pushed by a handler is saved once, with the attempt that succeeded', async () => {
      await using storage = await openStorage()
      const tries = new Map<string, number>()
      const { crawler, dataset } = await makeCrawler(storage, 'tries', {
        async requestHandler({ request }) {
          const tried = (tries.get(request.url) ?? 0) + 1
          tries.set(request.url, tried)
          await dataset.pushData([
            { url: request.url, part: 1 },
            { url: request.url, part: 2 },
          ])
          if (tried < 2) throw new Error('not yet')
        },
      })
      const { requestsFinished } = await crawler.run(urls(6))

      assert.equal(requestsFinished, 6)
      const { items } = await dataset.getData()
      const seen = items.map(({ url, part }) => `${url} ${part}`)
      assert.deepEqual(
        seen.toSorted(),
        urls(6).flatMap((url) => [`${url} 1`, `${url} 2`]),
      )
      const { status, counts } = await runOf('tries')
      assert.deepEqual([status, counts.targets.done, counts.itemsNew], ['succeeded', 6, 12])
      assert.equal(counts.pages, 6, 'a try that failed is no page')
    })

    test('a request that was given up is a dead letter, handled for Crawlee, and gets new tries when it is reset', async () => {
      await using storage = await openStorage()
      let isBroken = true
      const { crawler, dataset, queue } = await makeCrawler(storage, 'letters', {
        maxRequestRetries: 1,
        async requestHandler({ request }) {
          await dataset.pushData({ url: request.url, retries: request.retryCount })
          if (isBroken && request.url.endsWith('/1')) throw new Error('the site says no')
        },
        failedRequestHandler: ({ request }) => dataset.pushData({ gaveUp: request.url }),
      })
      const { requestsFailed } = await crawler.run(urls(3))
      assert.equal(requestsFailed, 1)
      assert.equal((await queue.getInfo())!.handledRequestCount, 3)
      const { items } = await dataset.getData()
      assert.deepEqual(
        items.filter(({ gaveUp }) => gaveUp),
        [{ gaveUp: urls(2)[1] }],
      )
      assert.equal(items.length, 3, 'nothing of the tries that failed')

      const run = await runOf('letters')
      const failed = await store.targets(run.id, { statuses: ['failed'], limit: 10 })
      assert.match(failed.items[0]!.lastError!, /the site says no/)
      assert.equal(run.status, 'failed')

      isBroken = false
      await resetFailed({ store, actor: 'a person' }, run.id, {})
      const again = await makeCrawler(storage, 'letters', {
        requestHandler: ({ request }) =>
          dataset.pushData({ url: request.url, retries: request.retryCount }),
      })
      await again.crawler.run()
      const { items: now } = await dataset.getData()
      assert.deepEqual(now.at(-1), { url: urls(2)[1], retries: 0 })
      assert.equal((await runOf('letters')).status, 'succeeded')
    })

    test('items lists what handlers pushed, by run and with the name of the dataset', async () => {
      await using storage = await openStorage({
        itemKey: ({ sku }) => sku as string | undefined,
      })
      const { crawler, dataset } = await makeCrawler(storage, 'listed', {
        maxConcurrency: 1,
        maxRequestRetries: 0,
        requestHandler: async ({ request, pushData }) => {
          await pushData({ url: request.url }, 'listed')
          if (request.url === urls(3)[2]) throw new Error('the site says no')
          await dataset.pushData({ sku: 'same', by: request.url })
        },
        failedRequestHandler: ({ request }) => dataset.pushData({ gaveUp: request.url }),
      })
      await crawler.run(urls(3))
      await dataset.pushData({ outside: true })
      const { id } = await runOf('listed')
      await using unstuck = await open({ db: database.url, config: false })

      const all = await unstuck.items('crawlee/listed')
      assert.deepEqual(
        all.items.map(({ data, run, dataset }) => ({ data, run, dataset })),
        [
          { url: urls(3)[0] },
          { sku: 'same', by: urls(3)[1] },
          { url: urls(3)[1] },
          { gaveUp: urls(3)[2] },
        ].map((data) => ({ data, run: id, dataset: 'listed' })),
      )
      const { key, version } = all.items[1]!
      assert.deepEqual([key, version], ['same', 2])
      for (const item of all.items) assert.match(item.key, /^(same|\d+)$/)
      const rest = await unstuck.items({ source: 'crawlee/listed' }, { run: id, limit: 2 })
      assert.deepEqual(rest.items, all.items.slice(0, 2))
      const next = await unstuck.items('crawlee/listed', { after: rest.next! })
      assert.deepEqual(next.items, all.items.slice(2))
      const { stdout } = await unstuckCommand(
        ['items', 'crawlee/listed', '--format', 'csv', '--db', database.url],
        { cwd: import.meta.dirname },
      )
      assert.match(stdout, /^key,url,run,group,.*,dataset,data\.url,sku,by,gaveUp\n/)
    })

    test('an item with a key that comes again takes the place of the one before', async () => {
      await using storage = await openStorage({
        itemKey: ({ sku }, dataset) => (dataset === 'keys' ? (sku as string) : undefined),
      })
      const { crawler, dataset } = await makeCrawler(storage, 'keys', {
        maxConcurrency: 1,
        requestHandler: ({ request }) =>
          dataset.pushData({
            sku: `s${Number(request.url.at(-1)) % 2}`,
            by: request.url,
          }),
      })
      await crawler.run(urls(3))

      const { items } = await dataset.getData()
      assert.deepEqual(items, [
        { sku: 's0', by: urls(3)[2] },
        { sku: 's1', by: urls(3)[1] },
      ])
      const { itemsNew, itemsUpdated } = (await runOf('keys')).counts
      assert.deepEqual([itemsNew, itemsUpdated], [2, 1])
    })

    test('an item without a key is stored separately', async () => {
      const keys = [null, '', Number.NaN, undefined, 0, 'a'.repeat(2_000), 'a\0b', '\ud83d']
      await using storage = await openStorage({
        itemKey: ({ n }, dataset) => (dataset === 'no-keys' ? keys[n as number] : undefined),
      })
      const items = keys.flatMap((_, n) => [{ n }, { n }])
      const { crawler, dataset } = await makeCrawler(storage, 'no-keys', {
        requestHandler: () => dataset.pushData(items),
      })
      await crawler.run(urls(1))
      const { items: saved } = await dataset.getData()
      assert.deepEqual(
        saved.map(({ n }) => n as number),
        [0, 0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7],
      )
    })

    test('a request that is done and is rewound is handled again as it was', async () => {
      await using storage = await openStorage()
      const seen: unknown[] = []
      const options: BasicCrawlerOptions = {
        requestHandler: async ({ request: { url, method, payload, userData } }) =>
          void seen.push({ url, method, payload, from: userData['from'] }),
      }
      const [url] = urls(1)
      const request = { url: url!, method: 'POST', payload: 'q=1', userData: { from: 'a list' } }
      await (await makeCrawler(storage, 'rewound', options)).crawler.run([request as never])
      const [target] = (await store.targets((await runOf('rewound')).id, { limit: 9 })).items
      const { sentences: told } = await rewind({ store, actor: 'a person' }, target!, {
        to: 0,
        dryRun: false,
      })
      await (await makeCrawler(storage, 'rewound', options)).crawler.run()

      const once = { url, method: 'POST', payload: 'q=1', from: 'a list' }
      assert.deepEqual(seen, [once, once])
      assert.match(told.join(' '), /updated if they have a key, else duplicated/)
    })

    test('a crawler that ends releases its queue while another keeps working on its own', async () => {
      await using storage = await openStorage()
      const [begun, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      const other = await makeCrawler(storage, 'other', {
        maxConcurrency: 1,
        async requestHandler() {
          begun.resolve()
          await ended.promise
        },
      })
      const going = other.crawler.run(urls(6))
      await begun.promise
      const { crawler } = await makeCrawler(storage, 'early', {
        maxConcurrency: 1,
        requestHandler: async ({ crawler }) => crawler.stop(),
      })
      await crawler.run(urls(6))
      const [early, its] = [(await runOf('early')).counts, (await runOf('other')).counts]
      ended.resolve()

      assert.deepEqual([early.targets.planned, early.targets.in_progress], [5, 0])
      assert.ok(its.targets.in_progress > 1, 'what the other has fetched ahead stays with it')
      assert.equal((await going).requestsFinished, 6)
    })

    test('prefetched requests are released when a crawler ends before the queue does', async () => {
      await using storage = await openStorage()
      const { crawler } = await makeCrawler(storage, 'few', {
        maxConcurrency: 1,
        requestHandler: async ({ crawler }) => crawler.stop(),
      })
      await crawler.run(urls(9))

      const { targets } = (await runOf('few')).counts
      assert.deepEqual([targets.done, targets.planned, targets.in_progress], [1, 8, 0])
      const waiting = await store.targets((await runOf('few')).id, {
        statuses: ['planned'],
        limit: 9,
      })
      assert.deepEqual([...new Set(waiting.items.map(({ crashes }) => crashes))], [0])
      assert.equal((await store.observations()).length, 0)
    })

    test('a queue whose run has ended takes more, and hands out only what is new', async () => {
      await using storage = await openStorage()
      const seen: string[] = []
      const options: BasicCrawlerOptions = {
        requestHandler: async ({ request }) => void seen.push(request.url),
      }
      await (await makeCrawler(storage, 'more', options)).crawler.run(urls(2))
      const first = await runOf('more')
      assert.equal(first.status, 'succeeded')
      await (await makeCrawler(storage, 'more', options)).crawler.run(urls(4))

      assert.deepEqual(seen.toSorted(), urls(4))
      const second = await runOf('more')
      assert.deepEqual(
        [second.id, second.status, second.counts.targets.done],
        [first.id, 'succeeded', 4],
      )
    })

    test('cancelling the run ends the crawler, and loses no saved data', async () => {
      await using storage = await openStorage({ policy: { heartbeat: '100ms', lease: '5s' } })
      const cancelled = Promise.withResolvers<void>()
      const { crawler } = await makeCrawler(storage, 'cancelled', {
        maxConcurrency: 1,
        async requestHandler({ addRequests }) {
          const run = await runOf('cancelled')
          const request = { actor: 'a person', because: 'enough', evidence: null, expected: {} }
          await store.moveRun({ run: run.id, to: 'cancelled', action: 'cancel', ...request })
          while (!said.some((line) => line.includes('has ended'))) await new Promise(setImmediate)
          cancelled.resolve()
          await addRequests(['https://site.example/found'])
        },
      })
      await crawler.run(urls(3))
      await cancelled.promise

      const { status, counts } = await runOf('cancelled')
      assert.equal(status, 'cancelled')
      assert.deepEqual(
        [counts.targets.done, counts.targets.planned],
        [0, 3],
        'the page is to be done again',
      )
    })

    test('a request taken from its handler is saved once by its next owner, and the crawl continues', async () => {
      await using storage = await openStorage()
      let taken = 0
      const { crawler, dataset } = await makeCrawler(storage, 'taken', {
        async requestHandler({ request }) {
          await dataset.pushData({ url: request.url, by: taken })
          if (!request.url.endsWith('/1') || taken++ > 0) return
          const [target] = await store.targetsByKey((await runOf('taken')).id, [request.uniqueKey])
          const { id, cursor } = target!
          const info = { actor: 'a person', because: 'try again' }
          await store.rewind({ target: id, to: 0, next: null, cursor, ...info })
        },
      })
      await crawler.run(urls(3))

      const { items } = await dataset.getData()
      assert.deepEqual(items.map(({ url }) => url).toSorted(), urls(3))
      assert.equal(items.find(({ url }) => url === urls(3)[1])!.by, 1, 'of the second')
      assert.ok(said.some((line) => /is no longer ours/.test(line)))
      const { status, counts } = await runOf('taken')
      assert.deepEqual([status, counts.targets.done, counts.refused], ['succeeded', 3, 1])
    })

    test('a handler may push any number of items at once', async () => {
      await using storage = await openStorage()
      const { crawler, dataset } = await makeCrawler(storage, 'many', {
        maxRequestRetries: 0,
        requestHandler: () => dataset.pushData(Array.from({ length: 140_000 }, (_, n) => ({ n }))),
      })
      assert.equal((await crawler.run(urls(1))).requestsFinished, 1)
      assert.equal((await dataset.getInfo())!.itemCount, 140_000)
    })

    test('data pushed after the handler timed out is dropped; the next attempt pushes it again', async () => {
      await using storage = await openStorage()
      const [second, pushed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      let tries = 0
      const { crawler, dataset } = await makeCrawler(storage, 'late', {
        requestHandlerTimeoutSecs: 0.2,
        async requestHandler({ pushData }) {
          if (tries++ === 0) {
            await second.promise
            await pushData({ by: 'the first' }, 'late')
            return pushed.resolve()
          }
          second.resolve()
          await pushed.promise
          await pushData({ by: 'the second' }, 'late')
        },
      })
      await crawler.run(urls(1))
      assert.deepEqual((await dataset.getData()).items, [{ by: 'the second' }])
    })

    test("pushed data belongs to its handler, also when called from another handler's job", async () => {
      await using storage = await openStorage()
      // As p-queue and its like do: the job that ends begins the next one, in its own asynchronous context.
      const jobs: (() => Promise<void>)[] = []
      let isBusy = false
      const next = (): void => {
        const job = isBusy ? undefined : jobs.shift()
        isBusy ||= job !== undefined
        void job?.().finally(() => {
          isBusy = false
          next()
        })
      }
      const inTurn = (job: () => Promise<void>): Promise<void> =>
        new Promise((resolve, reject) => {
          jobs.push(() => new Promise(setImmediate).then(job).then(resolve, reject))
          next()
        })
      const { crawler, dataset } = await makeCrawler(storage, 'in-turn', {
        minConcurrency: 5,
        async requestHandler({ request, pushData }) {
          await inTurn(() => pushData({ url: request.url }, 'in-turn'))
          await new Promise(setImmediate)
          if (Number(request.url.at(-1)) % 3 === 0 && request.retryCount === 0)
            throw new Error('not yet')
        },
      })
      await crawler.run(urls(10))

      const { items } = await dataset.getData()
      assert.deepEqual(items.map(({ url }) => url).toSorted(), urls(10))
    })

    test('data pushed by background work that outlives its attempt is saved at once', async () => {
      await using storage = await openStorage()
      const found: object[] = []
      let flush: () => Promise<void> = async () => {}
      const { crawler, dataset } = await makeCrawler(storage, 'outlives', {
        maxConcurrency: 1,
        async requestHandler({ request }) {
          if (request.url.endsWith('/0') && request.retryCount === 0) {
            flush = AsyncLocalStorage.bind(() => dataset.pushData(found.splice(0)))
            throw new Error('not yet')
          }
          found.push({ url: request.url })
          await flush()
        },
      })
      await crawler.run(urls(3))

      const { items } = await dataset.getData()
      assert.deepEqual(items.map(({ url }) => url).toSorted(), urls(3))
    })

    test('data pushed after the request was taken is dropped; data from work that outlives it is saved', async () => {
      await using storage = await openStorage({ policy: { heartbeat: '100ms', lease: '5s' } })
      let tries = 0
      let outlives: () => Promise<void> = async () => {}
      const { crawler, dataset } = await makeCrawler(storage, 'gone', {
        async requestHandler({ request }) {
          const by = tries++
          if (by > 0) return dataset.pushData({ by })
          outlives = AsyncLocalStorage.bind(() => dataset.pushData({ by: 'later' }))
          const [target] = await store.targetsByKey((await runOf('gone')).id, [request.uniqueKey])
          const { id, cursor } = target!
          const info = { actor: 'a person', because: 'try again' }
          await store.rewind({ target: id, to: 0, next: null, cursor, ...info })
          while (!said.some((line) => line.includes('is lost'))) await new Promise(setImmediate)
          await dataset.pushData({ by })
        },
      })
      await crawler.run(urls(1))
      await outlives()

      assert.deepEqual((await dataset.getData()).items, [{ by: 1 }, { by: 'later' }])
      assert.ok(said.some((line) => /is no longer claimed here: 1 items dropped/.test(line)))
    })

    test('a request reclaimed without a crawler belongs to the next one to fetch it', async () => {
      await using storage = await openStorage()
      const { queue } = await makeCrawler(storage, 'reclaimed', {})
      await queue.addRequests(urls(1).map((url) => ({ url })))
      const { client } = queue
      const put = client.updateRequest.bind(client)
      // Between the two calls that Crawlee makes of it, another process is faster.
      client.updateRequest = async (...args) => {
        const answer = await put(...args)
        await client.listAndLockHead({ limit: 1, lockSecs: 60 })
        return answer
      }
      await queue.reclaimRequest((await queue.fetchNextRequest())!)
      const { targets } = (await runOf('reclaimed')).counts
      assert.deepEqual([targets.planned, targets.in_progress], [0, 1])
    })

    test('requests go to the front in the order of a stack, however many are added at once', async () => {
      await using storage = await openStorage()
      const seen: string[] = []
      const { crawler } = await makeCrawler(storage, 'stack', {
        maxConcurrency: 1,
        async requestHandler({ request, crawler }) {
          seen.push(new URL(request.url).pathname)
          if (seen.at(-1)!.length > 3) return
          const queue = await crawler.getRequestQueue()
          const links = Array.from({ length: 7 }, (_, n) => ({ url: `${request.url}${n}` }))
          await queue.addRequests(links, { forefront: true })
        },
      })
      await crawler.run(['https://site.example/a'])
      const isBelow = (path: string, of: string): boolean => path !== of && path.startsWith(of)
      for (const path of seen) {
        const below = seen.flatMap((one, n) => (isBelow(one, path) ? [n - seen.indexOf(path)] : []))
        const next = below.map((_, n) => n + 1)
        assert.deepEqual(below, next, `all that was found on ${path} comes right behind it`)
      }
      assert.equal(seen.length, 1 + 7 + 49)
    })

    test('a crawler waits for requests claimed by others, since they may return to the queue', async () => {
      await using storage = await openStorage()
      await using elsewhere = await openStorage()
      const other = await makeCrawler(elsewhere, 'shared', {})
      await other.queue.addRequests(urls(1).map((url) => ({ url })))
      const held = await other.queue.fetchNextRequest()
      const seen: string[] = []
      const { crawler, queue } = await makeCrawler(storage, 'shared', {
        requestHandler: async ({ request }) => void seen.push(request.url),
      })
      const going = crawler.run()
      assert.equal(await queue.isFinished(), false)
      await other.queue.reclaimRequest(held!)
      await elsewhere.teardown()

      assert.equal((await going).requestsFinished, 1)
      assert.deepEqual(seen, urls(1))
    })

    test('runs, progress and workers of it are seen through the API while it goes on', async () => {
      await using storage = await openStorage()
      const access = () => ({ name: 'a test', role: 'viewer' as const })
      const handler = createHandler({ db: database.url, access })
      const ask = async (path: string): Promise<{ items: Record<string, unknown>[] }> => {
        const answer = await handler.fetch(new Request(`http://localhost/api/${path}`))
        return (await answer.json()) as { items: Record<string, unknown>[] }
      }
      const seen: unknown[] = []
      const { crawler, dataset } = await makeCrawler(storage, 'watched', {
        maxConcurrency: 1,
        async requestHandler({ request }) {
          await dataset.pushData({ url: request.url })
          if (!request.url.endsWith('/1')) return
          const [run] = (await ask('runs?source=crawlee/watched')).items
          const { items: workers } = await ask('workers')
          const { status, done, total, extracted } = run!
          seen.push(
            { status, done, total, extracted },
            workers.map(({ pid }) => pid),
          )
        },
      })
      await crawler.run(urls(3))
      await handler.close()

      assert.deepEqual(seen, [
        { status: 'running', done: 1, total: 3, extracted: 1 },
        [process.pid],
      ])
    })

    test('settings that do not belong to the storage are unchanged', async () => {
      await using _storage = await openStorage()
      const theirs = new Configuration({ persistStorage: false, purgeOnStart: false })
      const queue = await RequestQueue.open('theirs', { config: theirs })
      const crawler = new BasicCrawler(
        { requestQueue: queue, requestHandler: async () => {} },
        theirs,
      )
      const { addedRequests } = await queue.addRequestsBatched(urls(3), { batchSize: 2 })
      assert.equal(addedRequests.length, 2, 'the third is on its way, as ever')
      assert.equal((await crawler.run(urls(3))).requestsFinished, 3)
      assert.equal((await store.runs({ source: 'crawlee/theirs', limit: 1 })).items.length, 0)
    })
  })
}
