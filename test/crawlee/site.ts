import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** A site that links all of its pages together, and writes down who fetched what. */
export type Site = AsyncDisposable & {
  readonly url: string
  /** Addresses of all pages. */
  readonly pages: readonly string[]
  /** Every fetch, in order. */
  readonly fetches: readonly { readonly page: string; readonly pid: number; readonly at: number }[]
}

/** Each page links to the next ones of a tree with this many branches. */
const BRANCHES = 3

/** Pages answer after this long, or when the test lets them. */
export async function startSite(
  count: number,
  answer: (page: number) => number | Promise<unknown> = () => 0,
): Promise<Site> {
  const fetches: { page: string; pid: number; at: number }[] = []
  const server = createServer((request, response) => {
    const n = Number(request.url!.slice('/page/'.length))
    if (!(n >= 0 && n < count)) return void response.writeHead(404).end()
    fetches.push({ page: addressOf(n), pid: Number(request.headers['x-pid']), at: Date.now() })
    const wait = answer(n)
    void (typeof wait === 'number' ? sleep(wait) : wait).then(() => {
      const links = Array.from({ length: BRANCHES }, (_, k) => n * BRANCHES + k + 1)
        .filter((linked) => linked < count)
        .map((linked) => `<a href="/page/${linked}">${linked}</a>`)
      response.setHeader('content-type', 'text/html')
      response.end(`<title>Page ${n}</title>${links.join('')}`)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const url = `http://127.0.0.1:${port}`
  const addressOf = (n: number): string => `${url}/page/${n}`
  return {
    url,
    pages: Array.from({ length: count }, (_, n) => addressOf(n)),
    fetches,
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  }
}
