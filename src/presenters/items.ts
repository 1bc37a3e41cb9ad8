import { shortId, type RunId } from '../core/model/id.ts'
import { UsageError } from '../core/model/errors.ts'
import type { Run } from '../core/model/run.ts'
import type { Store } from '../core/store/store.ts'
import {
  ITEM_STORE,
  type SavedItem,
  type ItemFilter,
  type ItemPart,
  type ItemPlace,
} from '../features/items/store/store.ts'
import { unknownSource } from './find.ts'

/** Which items of a source. */
export type ItemQuery = Omit<ItemFilter, 'limit'>

/** Only one batch is in memory, however many items there are and however slow their reader is. */
const BATCH_SIZE = 200
/** Of items that a filter may leave out: their data is not read. */
const FILTERED_BATCH_SIZE = 2_000
const FIRST_BATCH_SIZE = 20

/** How many items are read at once: fewer while they are large. */
export class BatchSize {
  readonly #max: number
  current = FIRST_BATCH_SIZE

  constructor({ run, group }: ItemQuery) {
    this.#max = run === undefined && group === undefined ? BATCH_SIZE : FILTERED_BATCH_SIZE
  }

  adapt(isLarge: boolean): void {
    this.current = isLarge ? Math.max(1, this.current >> 2) : Math.min(this.#max, this.current * 2)
  }
}

/** Yields all items that match, part by part. A part is read only when the one before it was consumed. */
export async function* itemParts(
  store: Store,
  query: ItemQuery,
  size: BatchSize,
): AsyncGenerator<ItemPart, void, void> {
  const place = await placeOf(store, query.source)
  const reader = await store.extend(ITEM_STORE)
  for (let after = query.after; ;) {
    const part = await reader.readItems(place, { ...query, after, limit: size.current })
    yield part
    if (part.next === null) return
    after = part.next
  }
}

/** Cuts a part to the items that are still wanted; `next`: where those after them begin. */
export function cutPart({ items, next }: ItemPart, wanted: number): ItemPart {
  if (items.length < wanted || (items.length === wanted && next === null)) return { items, next }
  const taken = items.slice(0, wanted)
  return { items: taken, next: taken.at(-1)!.position }
}

/** Returns up to `limit` items that match, and where to continue; null at the end. */
export async function listItems(store: Store, query: ItemQuery, limit: number): Promise<ItemPart> {
  const size = new BatchSize(query)
  const found: SavedItem[] = []
  for await (const part of itemParts(store, query, size)) {
    const { items, next } = cutPart(part, limit - found.length)
    found.push(...items)
    if (found.length === limit) return { items: found, next }
    size.adapt(false)
  }
  return { items: found, next: null }
}

/** Returns the items of a source that were new or changed last; of a run, those that it was the last to save. */
export async function latestItems(
  store: Store,
  source: string,
  run: Run | null,
  limit: number,
): Promise<SavedItem[]> {
  const reader = await store.extend(ITEM_STORE)
  const until = run?.finishedAt ?? undefined
  return reader.latestItems(await placeOf(store, source), { source, run: run?.id, until, limit })
}

/**
 * Returns whether there is any item. A source that has saved nothing yet returns false; an unknown source is
 * refused.
 */
export async function hasItems(store: Store, source: string): Promise<boolean> {
  const reader = await store.extend(ITEM_STORE)
  const place = await placeOf(store, source)
  if ((await reader.readItems(place, { source, limit: 1 })).items.length > 0) return true
  if ((await store.runs({ source, limit: 1 })).items.length > 0) return false
  throw await unknownSource(store, source)
}

/** Returns the id of a run that is named beside a source. */
export function checkRunOfSource(run: Run, source: string): RunId {
  if (run.source === source) return run.id
  throw new UsageError(`Run ${shortId(run.id)} is a run of ${run.source}, not of ${source}.`)
}

async function placeOf(store: Store, source: string): Promise<ItemPlace> {
  const [last] = (await store.runs({ source, limit: 1 })).items
  return last?.traits.items ?? 'items'
}
