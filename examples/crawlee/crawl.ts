// A crawl with Crawlee that survives kill -9. Only the storage is replaced.
//
//   node examples/crawlee/crawl.ts
//
// Kill it at any moment and start it again: it continues, with no page lost and no item duplicated. Start it in
// a second terminal: they share the work. Watch it with `unstuck runs`, `unstuck workers` and `unstuck serve`.
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { CheerioCrawler, Configuration } from '@crawlee/cheerio' // or from 'crawlee'
import { crawleeStorage } from '../../src/crawlee.ts' // in your project: from 'unstuck/crawlee'

const site = await startShop()

const storage = await crawleeStorage({
  itemKey: (item) => item['sku'] as string, // a product that is pushed again replaces the earlier one
})
const crawler = new CheerioCrawler(
  {
    maxConcurrency: 2,
    async requestHandler({ request, $, enqueueLinks, pushData }) {
      await pushData(
        $('li')
          .map((_, product) => ({ sku: $(product).attr('id'), name: $(product).text() }))
          .get(),
      )
      await enqueueLinks()
      console.log(`handled ${new URL(request.url).pathname}`)
    },
  },
  new Configuration({ storageClient: storage }),
)

await crawler.run([`${site}/aisle/1`])
const { items } = await crawler.getData()
console.log(`${items.length} products`)
process.exit() // the site would keep the process alive

/** A site of forty aisles with three products each. Its address is the same at every start. */
async function startShop(): Promise<string> {
  const shop = createServer(
    ({ url }, response) => void setTimeout(() => answer(url!, response), 50),
  )
  await new Promise<void>((resolve) => {
    shop.once('error', () => resolve()) // another process serves it
    shop.listen(Number(process.env['SHOP_PORT'] ?? 8_037), '127.0.0.1', () => resolve())
  })
  const port = (shop.address() as AddressInfo | null)?.port ?? process.env['SHOP_PORT'] ?? 8_037
  return `http://127.0.0.1:${port}`
}

function answer(url: string, response: ServerResponse): void {
  const aisle = Number(url.split('/').at(-1))
  const products = [1, 2, 3].map(
    (n) => `<li id="${aisle}-${n}">Product ${n} of aisle ${aisle}</li>`,
  )
  const links = [2 * aisle, 2 * aisle + 1]
    .filter((next) => next <= 40)
    .map((next) => `<a href="/aisle/${next}">aisle ${next}</a>`)
  response.setHeader('content-type', 'text/html')
  response.end([...products, ...links].join('\n'))
}
