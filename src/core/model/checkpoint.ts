import type { Claim } from './claim.ts'
import type { Item } from './item.ts'

/** One page, ready to be committed: its items and the cursor behind it, both or neither. */
export type Checkpoint = {
  readonly claim: Claim
  readonly source: string
  /** The sequence number the page follows. Together with `hash` it settles a COMMIT of unknown outcome. */
  readonly expectedSeq: number
  readonly page: number
  /** Undefined: unchanged. */
  readonly pageTarget?: number | undefined
  readonly next: string | null
  readonly lastItemId?: string | undefined
  readonly cursor?: unknown
  readonly skipped: number
  readonly items: readonly Item[]
  /** The hash of all fields above: detects a page that is sent twice. */
  readonly hash: string
  /** The last page: the target is finished in the same transaction. */
  readonly done: boolean
  /** How many characters that no database can store were replaced. @default 0 */
  readonly replaced?: number
}

/** The page's transaction, for the user's own tables. `?` placeholders on SQLite, `$1` on PostgreSQL. */
export type Transaction = {
  /** Runs one statement and returns its rows. */
  query(sql: string, params?: readonly unknown[]): Promise<Record<string, unknown>[]>
}

/** Writes to the user's own tables in the page's transaction. What it returns is awaited. */
export type InTransaction = (tx: Transaction) => unknown
