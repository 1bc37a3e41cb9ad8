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
