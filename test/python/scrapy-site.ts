import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

export type Fetch = { readonly path: string; readonly pid: number }

/** A shop with lists, books, duplicates, redirects and errors, that writes down who fetched what. */
export type ScrapySite = AsyncDisposable & {
  readonly url: string
  /** Every fetch since the last `forget`, in order. */
  readonly fetches: readonly Fetch[]
  /** Every address of the site, and how often a crawl without a kill fetches it. */
  readonly expected: ReadonlyMap<string, number>
  forget(): void
}

const LATENCY_MS = 20
const SLOW_MS = 700
const PER_LIST = 8
/** More than one request of Scrapy tries: the policy of the run retries it. */
const BROKEN_FETCHES = 4
const FLAKY_FETCHES = 1
/** One of so many books answers with an error at first. */
const FLAKY_EACH = 9

export async function startScrapySite(lists: number): Promise<ScrapySite> {
  const fetches: Fetch[] = []
  const errorsLeft = new Map<string, number>()
  const books = lists * PER_LIST
  const expected = expectedFetches(lists, books)
  const server = createServer((request, response) => {
    const path = request.url!
    fetches.push({ path, pid: Number(request.headers['x-pid']) })
    void sleep(path === '/book/2' ? SLOW_MS : LATENCY_MS).then(() => reply(path, response))
  })

  function reply(path: string, response: ServerResponse): void {
    response.setHeader('content-type', 'text/html; charset=utf-8')
    const left = errorsLeft.get(path) ?? errorsOf(path)
    if (left > 0) {
      errorsLeft.set(path, left - 1)
      return void response.writeHead(500).end('<h1>Broken</h1>')
    }
    const [, kind, name] = path.split('?', 1)[0]!.split('/')
    if (kind === 'old') return void response.writeHead(302, { location: `/book/${name}` }).end()
    if (kind === 'gone') return void response.writeHead(404).end('<h1>Gone</h1>')
    if (kind === 'book')
      return void response.end(`<h1>Book ${name}</h1><p class=price_color>£${name}</p>`)
    if (kind === 'time') return void response.end('<h1>Noon</h1>')
    response.end(listOf(Number(name), lists))
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    fetches,
    expected,
    forget() {
      fetches.length = 0
      errorsLeft.clear()
    },
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  }
}

/** Books of this list and of the one before, so that most are linked twice. */
function listOf(n: number, lists: number): string {
  const from = Math.max(0, (n - 2) * PER_LIST)
  const count = n * PER_LIST - from
  const links = Array.from(
    { length: count },
    (_, k) =>
      `<article class=product_pod><h3><a class=book href="/book/${from + k}">b</a></h3></article>`,
  )
  const next = n < lists ? [`<li class=next><a class=next href="/list/${n + 1}">n</a></li>`] : []
  const others = [`<a class=other href="/gone/1">g</a>`, `<a class=other href="/old/${n}">o</a>`]
  return `<h1>List ${n}</h1>${[...links, ...next, ...others].join('')}`
}

function errorsOf(path: string): number {
  if (path === '/book/5') return BROKEN_FETCHES
  if (path === '/broken') return Infinity
  const book = /^\/book\/(\d+)$/.exec(path)
  return book && Number(book[1]) % FLAKY_EACH === 0 ? FLAKY_FETCHES : 0
}

function expectedFetches(lists: number, books: number): Map<string, number> {
  const numbers = (count: number, from: number): number[] =>
    Array.from({ length: count }, (_, n) => n + from)
  return new Map([
    ...numbers(lists, 1).map((n) => [`/list/${n}`, 1] as const),
    ...numbers(books, 0).map((n) => [`/book/${n}`, 1 + errorsOf(`/book/${n}`)] as const),
    ...numbers(lists, 1).map((n) => [`/old/${n}`, 1] as const),
    ['/gone/1', 1],
    ['/time', lists],
  ])
}
