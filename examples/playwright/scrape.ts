// A scraper with a real browser, which is gone after every kind of stop: Unstuck ends all that the script has started,
// also when the script, Unstuck itself or both are killed with kill -9.
//
//   unstuck run shop -- node scrape.ts 'https://shop.example/list?page=1'
//
// It uses the Chrome of this machine; CHROME_PATH names another one. In your project: npm install playwright-core
import { setTimeout as sleep } from 'node:timers/promises'
import { chromium, type Page } from 'playwright-core'

// --------------------------------------------------------------- the client: copy it into your own scraper

const { UNSTUCK_URL, UNSTUCK_TOKEN } = process.env
const PATIENCE_MS = 5_000
let stopping = false

/** One call to the API of this run. Each may be sent again: the same page with the same content is saved once. */
async function unstuck(path: string, body?: unknown): Promise<unknown> {
  const method = body === undefined ? 'GET' : 'POST'
  const headers = { authorization: `Bearer ${UNSTUCK_TOKEN}`, 'content-type': 'application/json' }
  const request = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) }
  const giveUpAt = performance.now() + PATIENCE_MS
  for (;;) {
    const answer = await fetch(`${UNSTUCK_URL}${path}`, request).catch((error: Error) => error)
    if (!(answer instanceof Error)) {
      if (answer.ok) return answer.json()
      // 409 LEASE_LOST: another process has this run. Others: the text says what is wrong.
      if (answer.status !== 503) throw new Error(`${path}: ${await answer.text()}`)
    }
    if (stopping || performance.now() > giveUpAt) throw new Error(`${path}: no answer from Unstuck`)
    await sleep(200)
  }
}

// --------------------------------------------------------------- the scraper

/** What a listing shows, and where it goes on. */
async function scrape(tab: Page, url: string): Promise<{ items: Item[]; next: string | null }> {
  await tab.goto(url)
  const items: Item[] = []
  for (const link of await tab.locator('a.item').all()) {
    const href = await link.getAttribute('href')
    items.push({ url: new URL(href!, url).href, data: { name: await link.innerText() } })
  }
  const next = tab.locator('a[rel=next]')
  const href = (await next.count()) > 0 ? await next.getAttribute('href') : null
  return { items, next: href === null ? null : new URL(href, url).href }
}
type Item = { url: string; data: { name: string } }

const [, , first] = process.argv
if (UNSTUCK_URL === undefined || first === undefined) {
  console.error('Start it with: unstuck run shop -- node scrape.ts ADDRESS')
  process.exit(2)
}
// The page in hand is finished first. Playwright would close the browser at once.
process.on('SIGTERM', () => (stopping = true))

const run = (await unstuck('/')) as { page: number; next: string | null }
let page = run.page // the last page that was saved; 0 before the first
let url = page > 0 ? run.next : first

const { CHROME_PATH } = process.env
const chrome = CHROME_PATH ? { executablePath: CHROME_PATH } : { channel: 'chrome' }
const browser = await chromium.launch({ ...chrome, handleSIGTERM: false })
try {
  const tab = await browser.newPage()
  while (url !== null && !stopping) {
    const { items, next } = await scrape(tab, url)
    page++
    await unstuck('/checkpoint', { page, items, next }) // items and place, both or neither
    console.log(`page ${page}: ${items.length} items`)
    url = next
  }
} finally {
  await browser.close()
}
if (url === null) await unstuck('/finish', {})
else process.exitCode = 75 // not 0: that would mean that all is done
