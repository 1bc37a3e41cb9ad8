import { readFileSync } from 'node:fs'
import { ITEM_STORE } from '../items/store/store.ts'
import type { Run } from '../../core/model/run.ts'
import type { Listing, Store } from '../../core/store/store.ts'
import type { ItemFacts, Outcome, RunFacts, TargetFacts } from './compare.ts'

const BATCH = 1_000

/** All that a database holds, and what the command wrote into its own file. */
export async function readOutcome(store: Store, output: string | null): Promise<Outcome> {
  const runs = await readRuns(store)
  const targets: TargetFacts[] = []
  const items: ItemFacts[] = []
  const sources = new Map(runs.toReversed().map(({ id, source }) => [source, id]))
  for (const [source, newest] of sources) {
    const found = await all((after) => store.targets(newest, { limit: BATCH, ...after }))
    targets.push(...found.map(({ key, status, page }) => ({ source, key, status, page })))
    items.push(...(await readItems(store, source)))
  }
  return { runs, targets, items, output: output === null ? null : readKeys(output) }
}

/** Newest first. */
export async function readRuns(store: Store): Promise<RunFacts[]> {
  const runs = await all((after) => store.runs({ limit: BATCH, ...after }))
  return runs.map(toFacts)
}

function toFacts({ id, source, status, retryOf, counts: { pages, refused } }: Run): RunFacts {
  return { id, source, status, retryOf, pages, refused }
}

/** Reads all items of a source. */
export async function readItems(store: Store, source: string): Promise<ItemFacts[]> {
  const items: ItemFacts[] = []
  const itemStore = await store.extend(ITEM_STORE)
  for (let after: string | undefined; ;) {
    const part = await itemStore.readItems('items', { source, after, limit: BATCH })
    items.push(...part.items.map(({ key, data }) => ({ source, key, data })))
    if (part.next === null) return items
    after = part.next
  }
}

async function all<T>(list: (after: { after?: string }) => Promise<Listing<T>>): Promise<T[]> {
  const found: T[] = []
  for (let next: string | null | undefined; next !== null;) {
    const part: Listing<T> = await list(next === undefined ? {} : { after: next })
    found.push(...part.items)
    next = part.next
  }
  return found
}

/** Null when the command did not write the file. */
function readKeys(path: string): string[] | null {
  try {
    return keysIn(readFileSync(path, 'utf8'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

/** One key per line: the `key`, `url` or `id` of a line that is a JSON object with one, else the line itself. */
export function keysIn(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trimEnd())
    .filter((line) => line !== '')
    .map((line) => keyOf(line) ?? line)
}

function keyOf(line: string): string | null {
  if (!line.startsWith('{')) return null
  try {
    const { key, url, id } = JSON.parse(line) as Record<string, unknown>
    const found = key ?? url ?? id
    return typeof found === 'string' || typeof found === 'number' ? String(found) : null
  } catch {
    // A line that a kill cut off is its own key.
    return null
  }
}
