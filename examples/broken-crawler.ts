// A crawler with a bug that no test on a calm day finds: it saves its items in batches, but moves its page on at once.
// Killed in between, it continues after pages whose items were never saved. `unstuck chaos` finds it:
//
//   node bin/unstuck.js chaos --kills 5 -- node examples/broken-crawler.ts     in your project: npx unstuck chaos …
//
// own-code.ts is the same crawler without the bug.
import { AlreadyRunningError, exitCodeOf, open } from '../src/index.ts' // in your project: from 'unstuck'

const PAGES = 40
const BATCH = 12 // items, four pages

type Offer = { url: string; data: { title: string } }

const unstuck = await open()
try {
  const run = await unstuck.begin('portal-b')
  const unsaved: Offer[] = []
  for (let page = run.page + 1; page <= PAGES; page++) {
    run.signal.throwIfAborted()
    unsaved.push(...(await fetchPage(page)))
    const isFull = unsaved.length >= BATCH || page === PAGES
    // The bug: this page counts as done from here on, but what it brought may still be in memory alone.
    await run.checkpoint({ page, items: isFull ? unsaved.splice(0) : [] })
  }
  await run.succeed()
} catch (error) {
  if (!(error instanceof AlreadyRunningError)) throw error
  console.error(error.message)
  process.exitCode = exitCodeOf(error)
} finally {
  await unstuck.close()
}

/** Stands for a request that takes its time. */
async function fetchPage(page: number): Promise<Offer[]> {
  await new Promise((resolve) => setTimeout(resolve, 50))
  return [1, 2, 3].map((n) => ({
    url: `https://portal-b.example/offers/${page}-${n}`,
    data: { title: `Offer ${n} of page ${page}` },
  }))
}
