import { openStore } from '../core/store/open.ts'
import { claim, registerWorker, savePage, enqueueCrawl } from './fixtures.ts'

/** Commits pages of a source of its own as fast as it can for a while, and says how many it got in. */

const CLAIMS = 4
const [url, source, forMs] = process.argv.slice(2)
const store = await openStore(url!)
const worker = await registerWorker(store, { source: source! })
await enqueueCrawl(store, CLAIMS, { source: source! })
const claims = await claim(store, worker, CLAIMS, { source: source! })
process.send!('ready')
process.once('message', () => void saturate())

async function saturate(): Promise<void> {
  const until = performance.now() + Number(forMs)
  let pages = 0
  // Several at once, so that one commit follows the other without a gap.
  await Promise.all(
    claims.map(async (claimed) => {
      for (; performance.now() < until; pages++) claimed = await savePage(store, claimed)
    }),
  )
  await store.close()
  process.send!({ pages })
  process.disconnect()
}
