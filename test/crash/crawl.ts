import { crawlOptions } from '../../src/features/chaos/demo/crawl.ts'
import { defineCrawl } from '../../src/index.ts'

/** The demo's crawl with the default lease: a recovery that waits for a lease shows. */
export default defineCrawl({ ...crawlOptions, policy: { retries: 100, backoff: '50ms' } })
