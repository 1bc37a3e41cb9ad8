/** A crawler as far as its limit goes. */
export type LimitedCrawler = {
  readonly maxRequestsPerCrawl?: number
  readonly handledRequestsCount: number
  readonly requestQueue?: { readonly name?: string }
  readonly config: { get(option: 'purgeOnStart'): unknown }
  readonly stats: { resetStore(): Promise<void> }
}

const LIMIT_OPTION = 'maxRequestsPerCrawl'
const DEFAULT_QUEUE = 'default'

/** It has handled as many requests as it was asked to, and its next start counts from nothing, as it does in Crawlee. */
export function isAtLimit(crawler: LimitedCrawler): boolean {
  const { maxRequestsPerCrawl, handledRequestsCount, config } = crawler
  if (!maxRequestsPerCrawl || config.get('purgeOnStart') === false) return false
  return handledRequestsCount >= maxRequestsPerCrawl
}

/** By what the crawl was finished as asked, so that the next start begins anew; null: it goes on, as on a queue with a name. */
export function reachedLimit(crawler: LimitedCrawler): string | null {
  return isAtLimit(crawler) && crawler.requestQueue?.name === DEFAULT_QUEUE ? LIMIT_OPTION : null
}

/** What it has counted is kept with the requests that are left: with it, the next start would be over its limit at once. */
export async function resetCount(crawler: LimitedCrawler): Promise<void> {
  if (isAtLimit(crawler)) await crawler.stats.resetStore()
}
