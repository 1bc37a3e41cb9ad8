import process from 'node:process'
import { CheerioCrawler, Configuration, log } from '@crawlee/cheerio'
import { crawleeStorage } from '../../src/crawlee.ts'
import type { PolicyOptions } from '../../src/lib/validate/policy-options.ts'
import { mark } from '../processes/child-helpers.ts'

/** A crawler as people write them: it follows links and pushes two items a page. What goes wrong is up to the test. */

const { SITE, CONCURRENCY = '5', POLICY = '{}', ADD = '0', FATAL } = process.env
log.setLevel(log.LEVELS.WARNING)

const storage = await crawleeStorage({ policy: JSON.parse(POLICY) as PolicyOptions })
const crawler = new CheerioCrawler(
  {
    // Whatever the machine is busy with, it is the same crawl.
    minConcurrency: Number(CONCURRENCY),
    maxConcurrency: Number(CONCURRENCY),
    preNavigationHooks: [
      (_, options) => void (options.headers = { ...options.headers, 'x-pid': String(process.pid) }),
    ],
    async requestHandler({ request, $, enqueueLinks, addRequests, pushData }) {
      if (request.url === FATAL) {
        mark('fatal')
        process.kill(process.pid, 'SIGKILL')
      }
      await pushData({ url: request.url, title: $('title').text() })
      await enqueueLinks()
      await pushData({ url: request.url, links: $('a').length })
      if (ADD === '0') return
      await addRequests(Array.from({ length: Number(ADD) }, (_, n) => `${SITE}/more/${n}`))
      mark('added')
    },
  },
  new Configuration({ storageClient: storage }),
)
mark('ready')
const { requestsFinished } = await crawler.run([`${SITE}/page/0`])
mark('done', String(requestsFinished))
