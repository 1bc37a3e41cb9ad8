import { seededFraction } from '../../src/features/chaos/random.ts'
import type { Business, Directory, Listing, Section } from '../../src/features/chaos/demo/site.ts'

/** How many states, cities in each, and trades in each city. */
export type Extent = { readonly states: number; readonly cities: number; readonly trades: number }

const PAGES_MIN = 4
const PAGES_MAX = 12
const LISTINGS_PER_PAGE = 3

/** Returns a directory of each trade in each city: a target each, of 4 to 12 pages. */
export function makeExtent(seed: number, { states, cities, trades }: Extent): Directory {
  const businesses = new Map<string, Business>()
  const targets = count(states).flatMap((s) =>
    count(cities).flatMap((c) =>
      count(trades).map((t): Section => {
        const [state, city, trade] = [`s${s}`, `city-${c}`, `trade-${t}`]
        const key = `${state}/${city}/${trade}`
        const share = seededFraction(seed, key, 'pages')
        const pages = count(PAGES_MIN + Math.floor(share * (PAGES_MAX - PAGES_MIN + 1))).map(
          (page) =>
            count(LISTINGS_PER_PAGE).map((n): Listing => {
              const url = `https://directory.example/${key}/${page}-${n}`
              const digits = Math.floor(seededFraction(seed, url, 'phone') * 10_000)
              const business = {
                name: `${trade} ${page}-${n}`,
                trade,
                city,
                phone: `555-${digits}`,
              }
              businesses.set(url, business)
              return { ...business, url }
            }),
        )
        return { key, state, pages }
      }),
    ),
  )
  return { seed, targets, businesses, pages: targets.reduce((sum, t) => sum + t.pages.length, 0) }
}

/** From 1, with as many digits as the largest. */
function count(to: number): string[] {
  return Array.from({ length: to }, (_, n) => String(n + 1).padStart(String(to).length, '0'))
}
