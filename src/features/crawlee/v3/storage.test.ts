import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { tmpdir } from 'node:os'
import { test } from 'node:test'
import { promisify } from 'node:util'
import * as crawlee from '@crawlee/cheerio'
import { UsageError } from '../../../core/model/errors.ts'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import { sqliteEngine } from '../../../testing/sqlite-engine.ts'
import { crawleeStorage } from './storage.ts'

const { BasicCrawler, Configuration, Dataset, log, RequestQueue } = crawlee
log.setLevel(log.LEVELS.OFF)

test('an unknown option, or one of the wrong type, is rejected before a database is opened', async () => {
  const wrong: [unknown, RegExp][] = [
    [{ dB: 'postgres://x' }, /has no dB; did you mean db\?/],
    [{ database: 'sqlite:x' }, /has no database/],
    [{ db: '' }, /db must be an address/],
    [{ db: 5 }, /db must be a string/],
    [{ signals: 'no' }, /signals must be a boolean/],
    [{ itemKey: 'sku' }, /itemKey must be a function/],
    [{ policy: { leese: '5s' } }, /leese/],
    [{ crawlee: crawlee }, /crawlee has no basic\.BasicCrawler/],
    [{ crawlee: null }, /crawlee has no basic\.BasicCrawler/],
    [{ crawlee: { basic: crawlee, core: {} } }, /crawlee has no core\.RequestProvider/],
    [
      { crawlee: { basic: { BasicCrawler: Object }, core: crawlee } },
      /basic\.BasicCrawler\.prototype\._init/,
    ],
    ['postgres://x', /must be an object/],
  ]
  for (const [options, message] of wrong)
    await assert.rejects(crawleeStorage(options as object), (error: Error) => {
      assert.ok(error instanceof UsageError, error.message)
      assert.match(error.message, message)
      return true
    })
})

test('given modules are used, and nothing is logged', async () => {
  await using database = await sqliteEngine.empty()
  const said: string[] = []
  const modules = { core: crawlee, basic: crawlee }
  await using _storage = await crawleeStorage({
    db: database.url,
    crawlee: modules,
    log: (line) => said.push(line),
  })
  assert.deepEqual(said, [])
})

test('if no Crawlee is installed, the log explains the consequence', async () => {
  await using database = await sqliteEngine.empty()
  const program = `
    const { crawleeStorage } = await import('${new URL('./storage.ts', import.meta.url).href}')
    const storage = await crawleeStorage({ db: '${database.url}' })
    await storage.close()`
  // Neither loaded nor to be found from here.
  const args = ['--input-type=module', '--eval', program]
  const { stderr } = await promisify(execFile)(process.execPath, args, { cwd: tmpdir() })
  assert.match(stderr, /no Crawlee was found to work with: items are saved when they are pushed/)
})

/** PostgreSQL keeps neither a NUL nor half a character. */
const ODD = 'a\0b \ud83d \u001a0000'

for (const engine of [sqliteEngine, postgresEngine]) {
  test(`a request with anything in it is kept, tried again and handled as it was on ${engine.name}`, async () => {
    await using database = await engine.fresh()
    await using storage = await crawleeStorage({ db: database.url, log: () => {} })
    const config = new Configuration({ storageClient: storage, purgeOnStart: false })
    const requestQueue = await RequestQueue.open('odd', { config })
    const dataset = await Dataset.open('odd', { config })
    const crawler = new BasicCrawler(
      {
        requestQueue,
        maxRequestRetries: 1,
        async requestHandler({ request }) {
          const { uniqueKey, userData, retryCount, errorMessages } = request
          if (userData['fails'] || retryCount === 0) throw new Error(`no ${ODD}`)
          const { [ODD]: text } = userData
          await dataset.pushData({ uniqueKey, text, said: errorMessages[0]!.includes(`no ${ODD}`) })
        },
      },
      config,
    )
    const url = 'https://site.example/'
    const { requestsFinished, requestsFailed } = await crawler.run([
      { url: `${url}plain`, userData: { [ODD]: 'fine' } },
      { url: `${url}odd`, uniqueKey: `odd ${ODD}`, userData: { [ODD]: ODD } },
      { url: `${url}gives-up`, userData: { fails: ODD } },
    ])

    assert.deepEqual([requestsFinished, requestsFailed], [2, 1])
    const { items } = await dataset.getData()
    assert.deepEqual(
      items.toSorted((a) => (a['text'] === ODD ? -1 : 1)),
      [
        { uniqueKey: `odd ${ODD}`, text: ODD, said: true },
        { uniqueKey: `${url}plain`, text: 'fine', said: true },
      ],
    )
    const store = await database.open()
    const { items: runs } = await store.runs({ source: 'crawlee/odd', limit: 1 })
    const { targets, pages } = runs[0]!.counts
    assert.deepEqual([targets.done, targets.failed, pages], [2, 1, 2])
  })
}

for (const engine of [sqliteEngine, postgresEngine]) {
  test(`a request that another process has locked, or none, is not marked as handled on ${engine.name}, and the error gives the reason`, async () => {
    await using database = await engine.empty()
    await using storageClient = await crawleeStorage({ db: database.url, log: () => {} })
    await using other = await crawleeStorage({ db: database.url, log: () => {} })
    const config = new Configuration({ storageClient })
    const queue = await RequestQueue.open('shop', { config })
    await queue.addRequests([{ url: 'https://a.example/' }, { url: 'https://b.example/' }])
    const { id } = await storageClient.requestQueues().getOrCreate('shop')
    const theirs = other.requestQueue(id)
    const { items } = await theirs.listAndLockHead({ limit: 1, lockSecs: 60 })
    const waiting = await queue.addRequest({ url: 'https://c.example/' })

    const [locked, free] = [items[0]!.id, waiting.requestId]
    const markHandled = async (request: string): Promise<unknown> =>
      queue.markRequestHandled((await queue.getRequest(request))!)
    await assert.rejects(markHandled(locked), /is being handled by another process/)
    await assert.rejects(markHandled(free), /is not locked by this process: .*fetchNextRequest/)

    assert.equal((await queue.getInfo())!.handledRequestCount, 0)
  })
}
