import { UsageError } from '../../../core/model/errors.ts'
import type { RunId } from '../../../core/model/id.ts'
import type { Millis } from '../../../core/model/time.ts'
import type { StoreExtension } from '../../../core/store/store.ts'

/** An item as it was last saved. */
export type SavedItem = {
  readonly key: string
  readonly url: string | null
  readonly data: unknown
  /** Grows when the data changes; 1 for an item that was only ever seen as it is. */
  readonly version: number
  /** The run that was the last to save it. */
  readonly run: RunId
  /** Of the target that was the last to save it; null: it has none. */
  readonly group: string | null
  readonly firstSeenAt: Millis
  readonly lastSeenAt: Millis
  readonly changedAt: Millis
  /** The name of its dataset; null for an item that is in none. */
  readonly dataset: string | null
  /** The `after` of the items that follow it. */
  readonly position: string
}

/** Where the items of a source are: saved with its pages, or in the datasets of its crawler. */
export type ItemPlace = 'items' | 'datasets'

/** Reads of what runs have saved. A part costs the same however many items there are. */
export interface ItemStore {
  /**
   * Reads the next `limit` items and returns those that match, so that no call reads all of them to find few. Items are
   * in the order of their keys, with `since` in the order of their changes; entries of datasets in the order of their arrival.
   */
  readItems(place: ItemPlace, filter: ItemFilter): Promise<ItemPart>
  /** Returns the items that changed last, newest first, out of the last 2,000. */
  latestItems(place: ItemPlace, filter: LatestFilter): Promise<SavedItem[]>
  /** Returns how many items each run was the last to save. Reads all items of the source: not for loops. */
  itemsByRun(source: string): Promise<{ run: RunId; items: number }[]>
}

export type ItemFilter = {
  readonly source: string
  /** Only items that this run was the last to save. */
  readonly run?: RunId | undefined
  /** Only items that a target of this group was the last to save; empty: of none. */
  readonly group?: string | undefined
  /** Only items that were new or changed at this time or later. */
  readonly since?: Millis | undefined
  /** The `position` of an item: returns those after it. */
  readonly after?: string | undefined
  readonly limit: number
}

export type LatestFilter = Pick<ItemFilter, 'source' | 'run' | 'limit'> & {
  /** Only items that did not change later. */
  readonly until?: Millis | undefined
}

export type ItemPart = {
  readonly items: readonly SavedItem[]
  /** The `after` of the next part; null at the end. A part that is not the last can be without items. */
  readonly next: string | null
}

export const ITEM_STORE: StoreExtension<ItemStore> = {
  sqlite: async () => (await import('./sqlite.ts')).itemMethods,
  postgres: async () => (await import('./postgres.ts')).itemMethods,
}

/** How many items `latestItems` looks at. */
export const LATEST_SCANNED = 2_000

// — Rows of both engines —

export type ItemRow = {
  key: string
  url: string | null
  data: unknown
  version: number
  run_id: string
  group_name: string
  first_seen_at: number
  last_seen_at: number
  changed_at: number
  position: string
  /** 0 where a filter leaves it out; its data was not read. */
  matches: number
  dataset?: string
}

export function toPart(rows: readonly ItemRow[], limit: number): ItemPart {
  return {
    items: rows.filter(({ matches }) => matches === 1).map(toItem),
    next: rows.length < limit ? null : rows.at(-1)!.position,
  }
}

export function toItem(row: ItemRow): SavedItem {
  return {
    key: row.key,
    url: row.url,
    data: row.data,
    version: row.version,
    run: row.run_id,
    group: row.group_name === '' ? null : row.group_name,
    firstSeenAt: row.first_seen_at,
    lastSeenAt: row.last_seen_at,
    changedAt: row.changed_at,
    dataset: row.dataset ?? null,
    position: row.position,
  }
}

/** A place in the list of changes: the time of one, in the unit of its engine, and the key of its item. */
export function changePosition(after: string): { at: number; key: string } {
  const [, at, key] = /^(\d{1,16}) (.+)$/s.exec(after) ?? []
  if (at === undefined || key === undefined) throw noPosition()
  return { at: Number(at), key }
}

/** A place in the list of the entries of datasets. */
export function entryPosition(after: string): number {
  if (!/^\d{1,15}$/.test(after)) throw noPosition()
  return Number(after)
}

function noPosition(): UsageError {
  return new UsageError(
    '`after` is no place in this list: give `next` of an earlier answer with the same filters.',
  )
}

/** Entries without a key of their own are named by their number in their dataset. */
export function entryKey({ key, seq }: { key: string | null; seq: number }): string {
  return key === null || /^push [0-9a-f-]{36} \d+$/.test(key) ? String(seq) : key
}
