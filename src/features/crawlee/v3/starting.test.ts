import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import {
  BasicCrawler,
  Configuration,
  KeyValueStore,
  log,
  RequestQueue,
  type BasicCrawlerOptions,
} from '@crawlee/cheerio'
import { EXIT } from '../../../core/model/exit-codes.ts'
import { shortId } from '../../../core/model/id.ts'
import type { Run } from '../../../core/model/run.ts'
import { cancel } from '../../../operator/actions.ts'
import { hasRecord, withStorages, type StorageDatabase } from '../store/store.ts'
import { isLong } from '../../../testing/long-tests.ts'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import { sqliteEngine } from '../../../testing/sqlite-engine.ts'
import type { TestDatabase } from '../../../testing/test-database.ts'
import { crawleeStorage, type CrawleeStorage } from './storage.ts'

log.setLevel(log.LEVELS.OFF)

const urls = (count: number): string[] =>
  Array.from({ length: count }, (_, n) => `https://site.example/${n}`)

for (const engine of isLong ? [sqliteEngine, postgresEngine] : [sqliteEngine]) {
  describe(`a crawl of Crawlee that is started again on ${engine.name}`, () => {
    let database: TestDatabase
    let store: StorageDatabase
    let said: string[] = []
    beforeEach(async () => {
      database = await engine.fresh()
      store = await withStorages(await database.open())
      said = []
    })
    afterEach(() => database[Symbol.asyncDispose]())

    const openStorage = (): Promise<CrawleeStorage> =>
      crawleeStorage({ db: database.url, log: (line) => said.push(line) })

    async function runOf(name: string): Promise<Run> {
      const { items } = await store.runs({ source: `crawlee/${name}`, limit: 1 })
      return items[0]!
    }

    /** A start of a program that crawls a queue with a name; what it pushes goes to the default dataset. */
    async function crawlShop(
      requests: string[],
      { only = Infinity, purgeOnStart = true }: { only?: number; purgeOnStart?: boolean } = {},
    ): Promise<number> {
      await using storage = await openStorage()
      const config = new Configuration({ storageClient: storage, purgeOnStart })
      const requestQueue = await RequestQueue.open('shop', { config })
      let pages = 0
      const requestHandler: BasicCrawlerOptions['requestHandler'] = async (context) => {
        await context.pushData({ url: context.request.url })
        if (++pages === only) context.crawler.stop()
      }
      const crawler = new BasicCrawler({ requestQueue, requestHandler, maxConcurrency: 1 }, config)
      return (await crawler.run(requests)).requestsFinished
    }

    test('nothing is renamed while a named queue has work left', async () => {
      assert.equal(await crawlShop(urls(3), { only: 1 }), 1)
      said = []
      assert.equal(await crawlShop(urls(3)), 2)

      assert.ok(said.some((line) => /crawlee\/shop continues: 2 requests are left/.test(line)))
      const dataset = await store.storage('dataset', 'default')
      const { total } = await store.entries(dataset!.id, { offset: 0, limit: 9, desc: false })
      assert.equal(total, 3, 'the items of both starts')
      assert.equal((await store.storages('dataset', { offset: 0, limit: 9, desc: false })).total, 1)
    })

    test('a run that ended with requests left continues when they are added again', async () => {
      await crawlShop(urls(3), { only: 1 })
      const run = await runOf('shop')
      await cancel({ store, actor: 'a person' }, run.id)

      assert.equal(await crawlShop(urls(3)), 2)
      const { id, status, counts } = await runOf('shop')
      assert.deepEqual([id, status, counts.targets.done], [run.id, 'succeeded', 3])
      const entry = (await store.audit({ run: run.id, limit: 9 })).at(-1)
      assert.equal(entry!.because, 'its crawler was started again')
    })

    test('a crawler that adds nothing gets an error that its run ended with requests left, and stops', async () => {
      await crawlShop(urls(3), { only: 1 })
      const run = await runOf('shop')
      await cancel({ store, actor: 'a person' }, run.id)
      const before = process.exitCode
      try {
        assert.equal(await crawlShop([]), 0)
        assert.equal(process.exitCode, EXIT.resumable)
      } finally {
        process.exitCode = before
      }
      const short = shortId(run.id)
      const told = said.filter((line) => line.includes('was ended with'))
      assert.deepEqual(told, [
        `run ${short} was ended with 2 requests left: \`unstuck resume ${short}\``,
      ])
      assert.equal((await runOf('shop')).status, 'cancelled')
    })

    /** A start of a program that handles so many requests and no more, though each page has two links. */
    async function crawlSome(name: string | null, max: number): Promise<string[]> {
      await using storage = await openStorage()
      const config = new Configuration({ storageClient: storage })
      const requestQueue = await RequestQueue.open(name, { config })
      const seen: string[] = []
      const requestHandler: BasicCrawlerOptions['requestHandler'] = async ({
        request,
        crawler,
      }) => {
        seen.push(request.url)
        const links = ['a', 'b'].map((link) => `${request.url}/${link}`)
        // As one may: Crawlee's own addRequests() would leave out what is beyond the limit.
        await (await crawler.getRequestQueue()).addRequests(links.map((url) => ({ url })))
      }
      const limits = { maxConcurrency: 1, maxRequestsPerCrawl: max }
      // Known by the same name at every start, as the first crawler of a process is.
      const statisticsOptions = { id: 'first' }
      const options = { requestQueue, requestHandler, statisticsOptions, ...limits }
      await new BasicCrawler(options, config).run(urls(1))
      return seen
    }

    test('a crawl that reached its maxRequestsPerCrawl is finished as asked: the next start begins anew', async () => {
      const before = process.exitCode
      const first = await crawlSome(null, 3)
      const { id, status } = await runOf('default')
      assert.deepEqual([first.length, status, process.exitCode], [3, 'cancelled', before])
      const entry = (await store.audit({ run: id, limit: 9 })).at(-1)
      assert.equal(entry!.because, 'maxRequestsPerCrawl was reached')
      const told = `run ${shortId(id)} is ended with 4 requests left: maxRequestsPerCrawl was reached`
      assert.deepEqual(
        said.filter((line) => line.includes('maxRequestsPerCrawl')),
        [told],
      )

      assert.deepEqual(await crawlSome(null, 3), first, 'from the first page')
      assert.notEqual((await runOf('default')).id, id)
    })

    test('a queue with a name continues after maxRequestsPerCrawl with what is left', async () => {
      const first = await crawlSome('some', 3)
      const second = await crawlSome('some', 3)
      assert.deepEqual([first.length, second.length], [3, 3])
      assert.equal(new Set([...first, ...second]).size, 6)
      const { status, counts } = await runOf('some')
      assert.deepEqual([status, counts.targets.done], ['interrupted', 6])
    })

    test('a storage renamed to an existing name is logged with the name it got', async () => {
      await using storage = await openStorage()
      const config = new Configuration({ storageClient: storage, purgeOnStart: false })
      const requestHandler: BasicCrawlerOptions['requestHandler'] = ({ pushData }) =>
        pushData({ a: 1 })
      await new BasicCrawler({ requestHandler }, config).run(urls(1))
      const records = await KeyValueStore.open(null, { config })
      await records.setValue('INPUT', { from: 'a person' })
      await records.setValue('OUTPUT', 1)
      const { id, finishedAt } = await runOf('default')
      const day = new Date(finishedAt!).toISOString().slice(0, 10)
      const taken = `default-${day}-${shortId(id)}`
      for (const kind of ['dataset', 'records'] as const) await store.makeStorage(kind, taken)
      await storage.purge()

      const kept = said.flatMap((line) => line.match(/are kept as (\S+)/)?.[1] ?? [])
      assert.equal(kept.length, 2)
      const aside = [
        await store.storage('dataset', kept[0]!),
        await store.storage('records', kept[1]!),
      ]
      assert.deepEqual(
        aside.map((one) => one?.name.startsWith(`${taken}-`)),
        [true, true],
      )
      const fresh = await store.storage('records', 'default')
      assert.ok(await hasRecord(store, fresh!.id, 'INPUT'), 'carried over')
    })

    test('a start makes room for a new crawl only when the last one is finished, and keeps what it left', async () => {
      const crawlDefault = async (
        requestHandler: BasicCrawlerOptions['requestHandler'],
        requests: string[],
      ): Promise<{ seen: number; items: unknown[]; input: unknown }> => {
        await using storage = await openStorage()
        const config = new Configuration({ storageClient: storage })
        const crawler = new BasicCrawler({ requestHandler, maxConcurrency: 1 }, config)
        const { requestsFinished } = await crawler.run(requests)
        const records = await KeyValueStore.open(null, { config })
        const input = await records.getValue('INPUT')
        await records.setValue('INPUT', { from: 'a person' })
        await records.setValue('OUTPUT', { pages: requestsFinished })
        return { seen: requestsFinished, items: (await crawler.getData()).items, input }
      }
      const once: BasicCrawlerOptions['requestHandler'] = async ({
        request,
        pushData,
        crawler,
      }) => {
        await pushData({ url: request.url })
        crawler.stop()
      }
      const page: BasicCrawlerOptions['requestHandler'] = ({ request, pushData }) =>
        pushData({ url: request.url })

      const first = await crawlDefault(once, urls(3))
      assert.deepEqual([first.seen, first.input], [1, null])
      const second = await crawlDefault(page, urls(3))
      assert.ok(
        said.some((line) => /continues: 2 requests are left/.test(line)),
        said.join('\n'),
      )
      assert.deepEqual(second.items.length, 3, 'the items of both')
      assert.equal((await runOf('default')).status, 'succeeded')

      const third = await crawlDefault(page, urls(2))
      assert.deepEqual([third.seen, third.items.length], [2, 2], 'a new crawl')
      assert.deepEqual(third.input, { from: 'a person' })
      const { items: runs } = await store.runs({ source: 'crawlee/default', limit: 5 })
      assert.deepEqual(
        runs.map(({ counts }) => counts.targets.done),
        [2, 3],
      )
      const kept = await store.storages('dataset', { offset: 0, limit: 50, desc: true })
      const aside = kept.items.find(({ name }) => name.startsWith('default-'))!
      assert.equal((await store.entries(aside.id, { offset: 0, limit: 9, desc: false })).total, 3)
      const records = await store.storage('records', aside.name)
      assert.ok(await hasRecord(store, records!.id, 'OUTPUT'))
    })

    test('many purges at once act as one', async () => {
      await using storage = await openStorage()
      const config = new Configuration({ storageClient: storage, purgeOnStart: false })
      const crawler = new BasicCrawler(
        { requestHandler: ({ pushData }) => pushData({ a: 1 }) },
        config,
      )
      await crawler.run(['https://site.example/purge'])
      const count = async (): Promise<number> =>
        (await store.storages('dataset', { offset: 0, limit: 100, desc: false })).total
      const before = await count()
      const others = await Promise.all([openStorage(), openStorage(), openStorage()])
      await Promise.all(others.map((one) => one.purge()))
      await Promise.all(others.map((one) => one.purge()))
      await Promise.all(others.map((one) => one.close()))

      assert.equal(await count(), before, 'one was renamed, and none was made')
      assert.equal(await store.storage('dataset', 'default'), null)
    })
  })
}
