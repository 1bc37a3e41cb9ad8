// A run in your own code: no crawl to define, no targets to plan. Kill it at any moment and start it again:
// it continues after the last saved page.
//
//   node examples/own-code.ts
import { AlreadyRunningError, exitCodeOf, open } from '../src/index.ts' // in your project: from 'unstuck'

const PAGES = 20

const unstuck = await open()
try {
  const check = await unstuck.check('portal-a')
  console.log(`check: ${check.action}, ${check.because}`)

  const run = await unstuck.begin('portal-a')
  console.log(run.resumed ? `going on after page ${run.page}` : 'starting at page 1')
  for (let page = run.page + 1; page <= PAGES; page++) {
    run.signal.throwIfAborted() // SIGTERM, or the lease was lost
    const items = await fetchPage(page)
    await run.checkpoint({ page, items, cursor: { page } }) // items and cursor, both or neither
    console.log(`page ${page} saved`)
  }
  await run.succeed()
  console.log('done')
} catch (error) {
  if (!(error instanceof AlreadyRunningError)) throw error
  console.error(error.message)
  process.exitCode = exitCodeOf(error)
} finally {
  await unstuck.close()
}

/** Stands for a request that takes its time. */
async function fetchPage(page: number): Promise<{ url: string; data: unknown }[]> {
  await new Promise((resolve) => setTimeout(resolve, 100))
  return [1, 2, 3].map((n) => ({
    url: `https://portal-a.example/tenders/${page * 3 + n}`,
    data: { title: `Tender ${page * 3 + n}` },
  }))
}
