import { once } from 'node:events'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { seededFraction } from '../random.ts'

/** The contents of the site, made from a seed. The result of a crawl is compared with it. */
export type Directory = {
  readonly seed: number
  readonly targets: readonly Section[]
  /** Each business once, by its canonical address. */
  readonly businesses: ReadonlyMap<string, Business>
  readonly pages: number
}

/** One city's businesses of one trade, over several pages: a target of the crawl. */
export type Section = {
  readonly key: string
  readonly state: string
  readonly pages: readonly (readonly Listing[])[]
}

export type Business = {
  readonly name: string
  readonly trade: string
  readonly city: string
  readonly phone: string
}

/** A business on a page. Its address has several spellings. */
export type Listing = Business & { readonly url: string }

const CITIES: Readonly<Record<string, readonly string[]>> = {
  ca: ['los-angeles', 'san-diego', 'fresno', 'oakland'],
  tx: ['austin', 'dallas', 'el-paso', 'houston'],
  ny: ['albany', 'buffalo', 'rochester', 'yonkers'],
  fl: ['miami', 'orlando', 'tampa', 'naples'],
  wa: ['seattle', 'spokane', 'tacoma', 'yakima'],
  il: ['chicago', 'peoria', 'aurora', 'joliet'],
  oh: ['akron', 'dayton', 'toledo', 'columbus'],
  co: ['boulder', 'denver', 'pueblo', 'aspen'],
}
const TRADES = ['bakers', 'cafes', 'dentists', 'florists', 'garages', 'lawyers', 'movers']
const MORE_TRADES = ['painters', 'plumbers', 'roofers', 'tailors', 'tutors', 'vets', 'welders']
const FIRST = ['Acme', 'Blue', 'Corner', 'Delta', 'Evergreen', 'Fair', 'Golden', 'Harbor', 'Iron']
const LAST = ['& Sons', 'Brothers', 'Company', 'Express', 'House', 'Partners', 'Works', 'Workshop']

const PAGES_MIN = 5
const PAGES_MAX = 11
const LISTINGS_PER_PAGE = 8
/** Listings shift between requests: the last of a page is often the first of the next. */
const REPEAT_RATE = 0.4

/** Number of combinations of city and trade. Further sections repeat them with a number. */
export const SECTIONS_MAX =
  Object.values(CITIES).flat().length * (TRADES.length + MORE_TRADES.length)

export function makeDirectory(seed: number, sections: number): Directory {
  const businesses = new Map<string, Business>()
  const targets = chooseSections(seed, sections).map(([state, city, trade]) =>
    makeSection(seed, { state, city, trade }, businesses),
  )
  const pages = targets.reduce((sum, target) => sum + target.pages.length, 0)
  return { seed, targets, businesses, pages }
}

function chooseSections(
  seed: number,
  sections: number,
): [state: string, city: string, trade: string][] {
  const all = Object.entries(CITIES).flatMap(([state, cities]) =>
    cities.flatMap((city) =>
      [...TRADES, ...MORE_TRADES].map((trade): [string, string, string] => [state, city, trade]),
    ),
  )
  const order = new Map(all.map((one) => [one, seededFraction(seed, 'order', ...one)]))
  all.sort((a, b) => order.get(a)! - order.get(b)!)
  return Array.from({ length: sections }, (_, n) => {
    const [state, city, trade] = all[n % all.length]!
    const round = Math.floor(n / all.length)
    return [state, city, round === 0 ? trade : `${trade}-${round + 1}`]
  })
}

type SectionName = { readonly state: string; readonly city: string; readonly trade: string }

function makeSection(
  seed: number,
  section: SectionName,
  businesses: Map<string, Business>,
): Section {
  const { state, city, trade } = section
  const key = `${state}/${city}/${trade}`
  const spread = PAGES_MAX - PAGES_MIN + 1
  const count = PAGES_MIN + Math.floor(seededFraction(seed, key, 'pages') * spread)
  const pages: Listing[][] = []
  for (let page = 1; page <= count; page++) {
    const listings: Listing[] = []
    const before = pages.at(-1)?.at(-1)
    if (before && seededFraction(seed, key, page, 'repeated') < REPEAT_RATE) {
      listings.push({
        ...before,
        url: varyUrl(before.url, seededFraction(seed, key, page, 'again')),
      })
    }
    for (let n = 1; n <= LISTINGS_PER_PAGE; n++) {
      const id = `${page}${String(n).padStart(2, '0')}`
      const business = makeBusiness(seed, section, id)
      const url = `https://directory.example/${key}/${slug(business.name)}?id=${id}&lang=en`
      businesses.set(url, business)
      listings.push({ ...business, url: varyUrl(url, seededFraction(seed, url, 'spelling')) })
    }
    pages.push(listings)
  }
  return { key, state, pages }
}

function makeBusiness(seed: number, { state, city, trade }: SectionName, id: string): Business {
  const one = (of: readonly string[], what: string): string =>
    of[Math.floor(seededFraction(seed, state, city, trade, id, what) * of.length)]!
  const digits = Math.floor(seededFraction(seed, city, trade, id, 'phone') * 10_000)
  const name = `${one(FIRST, 'first')} ${trade} ${one(LAST, 'last')}`
  return { name, trade, city, phone: `555-${String(digits).padStart(4, '0')}` }
}

function slug(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z]+/g, '-')
}

/** Returns another spelling of the same address, as links on the web have them. */
function varyUrl(url: string, share: number): string {
  const { pathname, searchParams } = new URL(url)
  const [id, lang] = [searchParams.get('id'), searchParams.get('lang')]
  const spellings = [
    `https://directory.example${pathname}?id=${id}&lang=${lang}`,
    `https://Directory.EXAMPLE${pathname}?id=${id}&lang=${lang}`,
    `https://directory.example${pathname}?lang=${lang}&id=${id}`,
    `https://directory.example${pathname}/?id=${id}&lang=${lang}`,
    `https://directory.example:443${pathname}?id=${id}&lang=${lang}#reviews`,
    `https://directory.example${pathname}?utm_source=letter&id=${id}&lang=${lang}&gclid=x${id}`,
  ]
  return spellings[Math.floor(share * spellings.length)]!
}

/** The response for a page. */
export type SitePage = {
  readonly listings: readonly Listing[]
  readonly pages: number
  readonly next: string | null
}

/** What the site counted. */
export type SiteStats = {
  /** Complete responses. */
  readonly served: number
  /** Repeated requests for a page that was answered before: a crash made them necessary. */
  readonly refetched: number
  readonly errors500: number
  readonly errors429: number
}

type PageResponse = { readonly status: 200 | 500 | 429; readonly waitMs: number }

const ERROR_500_RATE = 0.04
const ERROR_429_RATE = 0.03
const RETRY_AFTER_S = 1
const SLOW_RATE = 0.07
const WAIT_MAX_MS = 3_000

/** Serves the directory over HTTP on this machine. Like real sites it is sometimes slow and sometimes fails. */
export class Site {
  readonly #directory: Directory
  readonly #slowdown: number
  readonly #sections: ReadonlyMap<string, Section>
  readonly #server: Server
  readonly #requested = new Map<string, number>()
  readonly #accepted = new Map<string, number>()
  readonly #pendingUntil = new Map<string, number>()
  readonly #stats = { served: 0, refetched: 0, errors500: 0, errors429: 0 }

  /** The last page of the last section is answered when this resolves. */
  readonly #released = Promise.withResolvers<void>()

  private constructor(directory: Directory, slowdown: number) {
    this.#directory = directory
    this.#slowdown = slowdown
    this.#sections = new Map(directory.targets.map((section) => [section.key, section]))
    this.#server = createServer((request, response) => {
      void this.#serve(new URL(request.url ?? '/', this.address), response)
    })
    // Longer than any pause of a worker: closing a connection under a request would be an unplanned fault.
    this.#server.keepAliveTimeout = 60_000
  }

  /**
   * `slowdown`: how much slower than usual, so that a small crawl lasts long enough for every fault. `holdsLastPage`: the
   * last page is not answered before `release`, so that a crawl cannot end earlier.
   */
  static async open(
    directory: Directory,
    { slowdown = 1, holdsLastPage = false }: { slowdown?: number; holdsLastPage?: boolean } = {},
  ): Promise<Site> {
    const site = new Site(directory, slowdown)
    if (!holdsLastPage) site.release()
    site.#server.listen(0, '127.0.0.1')
    await once(site.#server, 'listening')
    return site
  }

  get address(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  get stats(): SiteStats {
    return this.#stats
  }

  /** Returns the remaining time of the page that is being fetched for a target; 0 when there is none. */
  remainingMs(key: string): number {
    return Math.max(0, (this.#pendingUntil.get(key) ?? 0) - performance.now())
  }

  release(): void {
    this.#released.resolve()
  }

  async close(): Promise<void> {
    this.#server.close()
    this.#server.closeAllConnections()
    await once(this.#server, 'close').catch(() => {})
  }

  async #serve(url: URL, response: ServerResponse): Promise<void> {
    if (url.pathname === '/sections') return send(response, 200, this.#listSections())
    const key = url.pathname.slice(1)
    const number = Number(url.searchParams.get('page') ?? 1)
    const page = this.#page(key, number)
    if (!page) return send(response, 404, { error: 'there is no such page' })

    const id = `${key}#${number}`
    const { status, waitMs } = this.#decide(id)
    this.#pendingUntil.set(key, performance.now() + waitMs)
    await new Promise((resolve) => setTimeout(resolve, waitMs))
    if (key === this.#directory.targets.at(-1)?.key && page.next === null) {
      this.#pendingUntil.set(key, Infinity)
      await this.#released.promise
      this.#pendingUntil.delete(key)
    }
    if (status === 500) {
      this.#stats.errors500++
      return send(response, 500, { error: 'something went wrong' })
    }
    if (status === 429) {
      this.#stats.errors429++
      return send(response, 429, { error: 'not so fast' }, { 'retry-after': String(RETRY_AFTER_S) })
    }
    if (!response.destroyed) this.#stats.served++
    send(response, 200, page)
  }

  #listSections(): { key: string; group: string; url: string }[] {
    return this.#directory.targets.map(({ key, state }) => ({
      key,
      group: state.toUpperCase(),
      url: `${this.address}/${key}`,
    }))
  }

  #page(key: string, number: number): SitePage | null {
    const section = this.#sections.get(key)
    const listings = section?.pages[number - 1]
    if (!section || !listings) return null
    const isLast = number === section.pages.length
    const next = isLast ? null : `${this.address}/${key}?page=${number + 1}`
    return { listings, pages: section.pages.length, next }
  }

  /** Depends only on the number of requests for this page. The third one always succeeds. */
  #decide(id: string): PageResponse {
    const { seed } = this.#directory
    const requested = (this.#requested.get(id) ?? 0) + 1
    this.#requested.set(id, requested)
    const fault = requested > 2 ? 1 : seededFraction(seed, id, requested, 'fault')
    const waitMs = Math.min(
      WAIT_MAX_MS,
      latencyMs(seededFraction(seed, id, requested, 'wait')) * this.#slowdown,
    )
    if (fault < ERROR_500_RATE) return { status: 500, waitMs: waitMs / 2 }
    if (fault < ERROR_500_RATE + ERROR_429_RATE) return { status: 429, waitMs: waitMs / 4 }
    const accepted = (this.#accepted.get(id) ?? 0) + 1
    this.#accepted.set(id, accepted)
    if (accepted > 1) this.#stats.refetched++
    return { status: 200, waitMs }
  }
}

/** Mostly 150 to 500 ms; some pages take over a second. */
function latencyMs(share: number): number {
  if (share < SLOW_RATE) return 1_000 + (share / SLOW_RATE) * 600
  return 150 + ((share - SLOW_RATE) / (1 - SLOW_RATE)) * 350
}

function send(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  response.end(JSON.stringify(body))
}
