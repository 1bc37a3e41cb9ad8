// A crawl that survives kill -9. Each page's items, and where to go on, are saved together or not at all.
//
//   node bin/unstuck.js work examples/resumable-crawl.ts --drain     in your project: npx unstuck work …
//
// Kill it at any moment and start it again: it continues after the last saved page of each target. Add
// `--workers 4`, or start it in a second terminal: they share the work. See it with `status` and `items directory`.
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { defineCrawl } from '../src/index.ts' // in your project: from 'unstuck'

type Listing = { companies: { path: string; name: string }[]; next: string | null; pages: number }

const CITIES = ['los-angeles', 'san-diego', 'austin', 'houston']
const TRADES = ['plumbers', 'roofers', 'florists']
const PAGES = 5

let site: Server

export default defineCrawl({
  source: 'directory',
  concurrency: 2, // pages in flight per process

  // What there is to crawl. Asked once per run; the same key twice is one target.
  *targets() {
    for (const city of CITIES) {
      for (const trade of TRADES) {
        yield { key: `${city}/${trade}`, group: city, url: `/${city}/${trade}?page=1` }
      }
    }
  },

  // One page. What it returns is saved in one transaction; throw, and it is tried again later.
  async page({ url, signal }) {
    const response = await fetch(onSite(url), { signal })
    if (!response.ok) throw new Error(`the site answered ${response.status}`)
    const listing = (await response.json()) as Listing
    return {
      items: listing.companies.map(({ path, name }) => ({
        url: `https://directory.example${path}`, // seen again, it is updated and not doubled
        data: { name },
      })),
      next: listing.next, // null: this target is done
      pageTarget: listing.pages,
    }
  },

  // Once per process: here the site itself stands in for the internet. Yours may start a browser.
  async setup() {
    site = createServer((request, response) => {
      const listing = listingAt(new URL(request.url!, 'http://localhost'))
      setTimeout(() => response.end(JSON.stringify(listing)), 100)
    })
    await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve))
  },
  teardown() {
    site.close()
  },
})

function onSite(path: string): URL {
  return new URL(path, `http://127.0.0.1:${(site.address() as AddressInfo).port}`)
}

/** What the site shows: three companies a page. */
function listingAt({ pathname, searchParams }: URL): Listing {
  const page = Number(searchParams.get('page'))
  return {
    companies: [1, 2, 3].map((n) => ({
      path: `${pathname}/${page}-${n}`,
      name: `Company ${page}-${n} of ${pathname.slice(1)}`,
    })),
    next: page < PAGES ? `${pathname}?page=${page + 1}` : null,
    pages: PAGES,
  }
}
