import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A small site with known contents: the truth that a crawl under fire is held against. */
export type Site = {
  readonly url: string
  readonly targets: number
  readonly pages: number
  /** Canonical addresses of all items. */
  readonly items: ReadonlySet<string>
  /** Whether the process with this pid is waiting for a page now. */
  isFetching(pid: number): boolean
  /** Answers the very last page, which is withheld until then: a crawl cannot end before. */
  release(): void
  close(): Promise<void>
}

const PAGES_PER_TARGET = 5
const ITEMS_PER_PAGE = 3
const LATENCY_MS = 120
/** Now and then a page takes long: survivors must recover others while they are in the middle of one. */
const SLOW_EVERY = 7
const SLOW_MS = 1_500

export async function startSite(targets: number): Promise<Site> {
  const fetching = new Map<number, number>()
  const released = Promise.withResolvers<void>()
  let served = 0
  const server = createServer((request, response) => {
    const pid = Number(request.headers['x-pid'])
    fetching.set(pid, (fetching.get(pid) ?? 0) + 1)
    const { target, page } = parse(request)
    const isLast = target === targets - 1 && page === PAGES_PER_TARGET
    const timer = setTimeout(
      () =>
        void (isLast ? released.promise : Promise.resolve()).then(() => answer(request, response)),
      ++served % SLOW_EVERY === 0 ? SLOW_MS : LATENCY_MS,
    )
    response.once('close', () => {
      clearTimeout(timer)
      fetching.set(pid, fetching.get(pid)! - 1)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const items = new Set<string>()
  for (let target = 0; target < targets; target++) {
    for (let page = 1; page <= PAGES_PER_TARGET; page++) {
      for (const { url } of itemsOn(target, page)) items.add(url)
    }
  }
  return {
    url: `http://127.0.0.1:${port}`,
    targets,
    pages: targets * PAGES_PER_TARGET,
    items,
    isFetching: (pid) => (fetching.get(pid) ?? 0) > 0,
    release: () => released.resolve(),
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  }
}

function parse(request: IncomingMessage): { target: number; page: number } {
  const { pathname, searchParams } = new URL(request.url!, 'http://site')
  const target = Number(pathname.slice('/t/'.length))
  return { target, page: Number(searchParams.get('page') ?? 1) }
}

function answer(request: IncomingMessage, response: ServerResponse): void {
  const { target, page } = parse(request)
  const next = page < PAGES_PER_TARGET ? `/t/${target}?page=${page + 1}` : null
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify({ items: itemsOn(target, page), next }))
}

function itemsOn(target: number, page: number): { url: string; data: unknown }[] {
  return Array.from({ length: ITEMS_PER_PAGE }, (_, n) => ({
    url: `https://directory.example/t/${target}/${page}-${n}`,
    data: { target, page, n },
  }))
}
