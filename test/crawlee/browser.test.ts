import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Configuration, log, PlaywrightCrawler } from '@crawlee/playwright'
import { chromium as launcher } from 'playwright-core'
import { crawleeStorage } from '../../src/crawlee.ts'
import { chromium, noChromium } from '../../src/testing/chromium.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { startSite } from './site.ts'

log.setLevel(log.LEVELS.OFF)

test(
  'a PlaywrightCrawler runs on it unchanged, and what a page pushes goes with its request',
  { skip: noChromium },
  async () => {
    await using database = await sqliteEngine.empty()
    await using site = await startSite(4)
    await using storage = await crawleeStorage({ db: database.url, log: () => {} })
    const { executable, env } = await chromium()
    const crawler = new PlaywrightCrawler(
      {
        launchContext: {
          launcher,
          launchOptions: {
            executablePath: executable,
            args: ['--no-sandbox', '--headless=new', '--disable-gpu', '--disable-dev-shm-usage'],
            env: { ...(process.env as Record<string, string>), ...env },
          },
        },
        browserPoolOptions: { useFingerprints: false },
        async requestHandler({ page, request, enqueueLinks, pushData }) {
          await page.exposeFunction('save', (title: string) =>
            pushData({ url: request.url, title }),
          )
          await page.evaluate('save(document.title)')
          await enqueueLinks()
          if (request.retryCount === 0) throw new Error('not yet')
        },
      },
      new Configuration({ storageClient: storage }),
    )
    const { requestsFinished } = await crawler.run([site.pages[0]!])

    assert.equal(requestsFinished, 4)
    const { items } = await crawler.getData()
    assert.deepEqual(
      items.toSorted((a, b) => (a['url'] < b['url'] ? -1 : 1)),
      site.pages.map((url, n) => ({ url, title: `Page ${n}` })),
    )
    const store = await database.open()
    const { items: runs } = await store.runs({ source: 'crawlee/default', limit: 1 })
    assert.deepEqual([runs[0]!.status, runs[0]!.counts.itemsNew], ['succeeded', 4])
  },
)
