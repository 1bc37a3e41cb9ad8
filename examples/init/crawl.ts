// An example crawl. It brings a small site of its own, so it runs as it is:
//
//   npx unstuck work __MODULE__ --drain
//   npx unstuck items example
//
// Kill it at any moment and start it again: each target continues after its last saved page. Add `--workers 4`, or
// start it in a second terminal: they share the work.
import { createServer } from 'node:http'
import { defineCrawl } from 'unstuck'

export default defineCrawl({
  source: 'example', // at most one run of a source is live at a time
  concurrency: 2, // pages in flight per process

  // What there is to crawl. Asked when a new run starts; the same key twice is one target.
  *targets() {
    for (const kind of ['bars', 'cafes', 'museums']) {
      for (const city of ['hanoi', 'lisbon', 'oslo', 'quito']) {
        yield { key: `${kind}/${city}`, group: city, url: `/${kind}/${city}?page=1` }
      }
    }
  },

  // One page. All it returns is saved in one transaction; a page that throws saves nothing and is tried again.
  async page({ url, signal }) {
    const response = await fetch(siteAddress + url, { signal })
    if (!response.ok) throw new Error(`the site answered ${response.status}`)
    const listing = (await response.json()) as Listing
    return {
      // Seen again, an item is updated and not doubled.
      items: listing.places.map(({ url, name }) => ({ url, data: { name } })),
      next: listing.next, // the next page's address; null: this target is done
      pageTarget: listing.pages,
    }
  },

  // Once per process. Here it opens the site that stands in for the internet; yours may start a browser.
  async setup() {
    await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve))
    const address = site.address()
    if (address === null || typeof address === 'string') throw new Error('the site did not open')
    siteAddress = `http://127.0.0.1:${address.port}`
  },
  teardown() {
    site.close()
  },
})

// The site. With one of your own to crawl, all below goes away.

type Listing = { places: { url: string; name: string }[]; next: string | null; pages: number }

const PAGES = 8
const ANSWERS_AFTER_MS = 500
let siteAddress = ''

const site = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://site.example')
  const page = Number(searchParams.get('page'))
  const listing: Listing = {
    places: [1, 2, 3].map((n) => ({
      url: `https://site.example${pathname}/${page}-${n}`,
      name: `Place ${page}-${n}`,
    })),
    next: page < PAGES ? `${pathname}?page=${page + 1}` : null,
    pages: PAGES,
  }
  setTimeout(() => response.end(JSON.stringify(listing)), ANSWERS_AFTER_MS)
})
