import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BasicCrawler, Configuration, log } from '@crawlee/cheerio'
import { crawleeStorage } from '../src/crawlee.ts'
import { benchEngines, type BenchEngine } from './databases.ts'
import { median, print } from './figures.ts'

const PAGES = 1_000
const CONCURRENCY = 10
const ROUNDS = 3

/** Pages per second of a crawl whose pages cost nothing, so that the storage is what is measured. */
export async function benchCrawlee(engines: readonly string[]): Promise<void> {
  log.setLevel(log.LEVELS.OFF)
  for (const engine of await benchEngines(engines)) {
    const rates = { ours: [] as number[], memory: [] as number[], files: [] as number[] }
    try {
      for (let round = 0; round < ROUNDS; round++) {
        rates.ours.push(await unstuckStorageTime(engine))
        rates.memory.push(await crawleeStorageTime(false))
        rates.files.push(await crawleeStorageTime(true))
      }
    } finally {
      await engine.close()
    }
    print({
      bench: 'crawlee',
      engine: engine.name,
      'ours pages/s': Math.round(median(rates.ours)),
      "Crawlee's files pages/s": Math.round(median(rates.files)),
      "Crawlee's memory pages/s": Math.round(median(rates.memory)),
    })
  }
}

async function unstuckStorageTime(engine: BenchEngine): Promise<number> {
  const db = await engine.create()
  const storageClient = await crawleeStorage({ db: db.url, log: () => {} })
  const rate = await crawl(new Configuration({ storageClient }))
  await storageClient.close()
  await db.drop()
  return rate
}

/** Crawlee's own storage, in memory alone or with its files. */
async function crawleeStorageTime(persistStorage: boolean): Promise<number> {
  const localDataDirectory = mkdtempSync(join(tmpdir(), 'unstuck-bench-'))
  const storageClientOptions = { localDataDirectory, persistStorage }
  const rate = await crawl(new Configuration({ storageClientOptions }))
  rmSync(localDataDirectory, { recursive: true, force: true })
  return rate
}

/** Ten links a page until there are enough pages, and one item each. */
async function crawl(config: Configuration): Promise<number> {
  const crawler = new BasicCrawler(
    {
      minConcurrency: CONCURRENCY,
      maxConcurrency: CONCURRENCY,
      async requestHandler({ request, addRequests, pushData }) {
        const n = Number(new URL(request.url).pathname.slice(1))
        const links = Array.from({ length: 10 }, (_, k) => n * 10 + k + 1)
        await pushData({ url: request.url, n })
        await addRequests(links.filter((link) => link < PAGES).map(pageUrl))
      },
    },
    config,
  )
  const since = performance.now()
  const { requestsFinished } = await crawler.run([pageUrl(0)])
  const seconds = (performance.now() - since) / 1_000
  if (requestsFinished !== PAGES) throw new Error(`${requestsFinished} pages instead of ${PAGES}`)
  return PAGES / seconds
}

function pageUrl(n: number): string {
  return `https://site.example/${n}`
}
