import type { Claim } from './claim.ts'
import type { Item } from './item.ts'

/** One page, ready to be committed: its items and the cursor behind it, both or neither. */
export type Checkpoint = {
  readonly claim: Claim
  readonly source: string
  /** The sequence number the page follows. Together with `hash` it settles a COMMIT of unknown outcome. */
  readonly expectedSeq: number
  readonly page: number
  /** Undefined leaves what was there. */
  readonly pageTarget?: number | undefined
  readonly next: string | null
  readonly lastItemId?: string | undefined
  readonly cursor?: unknown
  readonly skipped: number
  readonly items: readonly Item[]
  /** Of everything above: the same page sent twice is recognised by it. */
  readonly hash: string
  /** The last page: the target is finished in the same transaction. */
  readonly done: boolean
  /** Characters in it that no database can store and that were replaced; left out: none. */
  readonly replaced?: number
}

/** The page's transaction, for the user's own tables. `?` placeholders on SQLite, `$1` on PostgreSQL. */
export type Transaction = {
  /** Runs one statement and returns its rows. */
  query(sql: string, params?: readonly unknown[]): Promise<Record<string, unknown>[]>
}

/** Writes to the user's own tables in the page's transaction. What it returns is awaited. */
export type InTransaction = (tx: Transaction) => unknown
