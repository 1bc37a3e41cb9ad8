import type { RunId } from '../../../core/model/id.ts'
import type { SavedItem } from '../../../core/model/item.ts'
import type { Store } from '../../../core/store/store.ts'
import type { Ledger } from './ledger.ts'
import type { SavedResults } from './report.ts'

const BATCH = 1_000

/** What the database holds in the end. */
export async function readResults(
  store: Store,
  ledger: Ledger,
  run: RunId,
  source: string,
): Promise<SavedResults> {
  const items: SavedItem[] = []
  for (let last = BATCH; last === BATCH;) {
    const batch = await store.items(source, items.at(-1)?.key ?? null, BATCH)
    items.push(...batch)
    last = batch.length
  }
  return { run: (await store.run(run))!, ledger: await ledger.rows(), items }
}
