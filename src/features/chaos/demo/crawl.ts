// The crawl that the demo runs, as a user would write it: `unstuck work crawl.ts --workers 6 --drain`.
import process from 'node:process'
import { RetryLaterError } from '../../../core/model/page-errors.ts' // in your project: from 'unstuck'
import { defineCrawl, type CrawlOptions } from '../../../contracts/define-crawl.ts'
import type { NewTarget } from '../../../core/worker/crawl-options.ts'
import { INSERT_PAGE } from '../ledger.ts'
import type { SitePage } from './site.ts'

const { UNSTUCK_DEMO_SITE: site, UNSTUCK_DEMO_SOURCE: source = 'demo' } = process.env
const insertPage =
  INSERT_PAGE[process.env['UNSTUCK_DEMO_ENGINE'] === 'postgres' ? 'postgres' : 'sqlite']

export const crawlOptions: CrawlOptions<unknown, unknown, undefined, undefined, never, unknown> = {
  source,

  async *targets() {
    const response = await fetch(`${site}/sections`)
    yield* (await response.json()) as NewTarget[]
  },

  async page({ target, url, page, signal }) {
    const response = await fetch(url, { signal })
    if (response.status === 429) throw new RetryLaterError(response)
    if (!response.ok) throw new Error(`the site answered ${response.status}`)
    const { listings, pages, next } = (await response.json()) as SitePage
    return {
      items: listings.map(({ url, ...data }) => ({ url, data })),
      next,
      pageTarget: pages,
      // The demo's own table, in the page's transaction. Without a unique key, so that doubled work shows.
      inTransaction: (tx) => tx.query(insertPage, [source, target.key, page]),
    }
  },

  // One target per process: each kill then interrupts exactly one.
  concurrency: 1,
  // A short lease, so that the zombie's story fits into a minute; and it is the demo that kills, not the targets.
  policy: { heartbeat: '1s', lease: '4s', retries: 20, maxCrashes: 1_000 },
}

export default defineCrawl(crawlOptions)
