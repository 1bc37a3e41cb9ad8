import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { BasicCrawler, Configuration, log, type BasicCrawlerOptions } from '@crawlee/cheerio'
import { EXIT } from '../../../core/model/exit-codes.ts'
import type { Store } from '../../../core/store/store.ts'
import { sqliteEngine } from '../../../testing/sqlite-engine.ts'
import type { TestDatabase } from '../../../testing/test-database.ts'
import { crawleeStorage, type CrawleeStorage, type CrawleeStorageOptions } from './storage.ts'

log.setLevel(log.LEVELS.OFF)

const urls = (count: number): string[] =>
  Array.from({ length: count }, (_, n) => `https://site.example/${n}`)

const captureLog = (): number => process.listenerCount('SIGTERM') + process.listenerCount('SIGINT')

describe('a crawl of Crawlee that is stopped', () => {
  let database: TestDatabase
  let store: Store
  let said: string[] = []
  beforeEach(async () => {
    database = await sqliteEngine.fresh()
    store = await database.open()
    said = []
  })
  afterEach(() => {
    process.exitCode = undefined
    return database[Symbol.asyncDispose]()
  })

  const openStorage = (options: CrawleeStorageOptions = {}): Promise<CrawleeStorage> =>
    crawleeStorage({ db: database.url, log: (line) => said.push(line), ...options })

  function makeCrawler(storageClient: CrawleeStorage, handle: () => void): BasicCrawler {
    const options: BasicCrawlerOptions = { requestHandler: async () => handle(), maxConcurrency: 1 }
    return new BasicCrawler(options, new Configuration({ storageClient }))
  }

  const left = (): string[] => said.filter((line) => line.includes('are left'))

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    test(`by ${signal} logs once how much is left, and exits with 75`, async () => {
      await using storage = await openStorage()
      const crawler = makeCrawler(storage, () => void process.emit(signal, signal))
      await crawler.run(urls(3))
      // As when the program has nothing left to do.
      await storage.teardown()

      assert.deepEqual(left(), [
        `stopped by ${signal}: 2 requests of default are left. Start again to continue.`,
      ])
      assert.equal(process.exitCode, EXIT.resumable)
    })
  }

  test('has nothing left of a queue that was dropped, whose run was ended', async () => {
    await using storage = await openStorage()
    let isSecond = false
    const crawler = makeCrawler(storage, () => {
      if (isSecond) process.emit('SIGTERM', 'SIGTERM')
      else crawler.stop()
    })
    await crawler.run(urls(3))
    const { items } = await store.runs({ source: 'crawlee/default', limit: 1 })
    isSecond = true
    await crawler.run(['https://site.example/second'])

    const run = (await store.run(items[0]!.id))!
    assert.deepEqual([run.status, run.counts.targets.planned], ['cancelled', 2])
    const [entry] = await store.audit({ run: run.id, newestFirst: true, limit: 1 })
    assert.equal(entry!.because, 'its queue was dropped')
    assert.deepEqual([left(), process.exitCode], [[], undefined])
  })

  test('handles SIGTERM and SIGINT while requests are claimed, unless disabled', async () => {
    const before = captureLog()
    const seen: number[] = []
    for (const signals of [true, false]) {
      await using storage = await openStorage({ signals })
      const crawler = makeCrawler(storage, () => void seen.push(captureLog() - before))
      await crawler.run([`https://site.example/${signals}`])
    }
    // Crawlee itself hears SIGINT.
    assert.deepEqual([seen, captureLog()], [[3, 1], before])
  })
})
