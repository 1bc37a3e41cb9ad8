import { RefusedError, StoreUnavailableError, UsageError } from '../../../core/model/errors.ts'
import { passwordsIn, registerSecrets } from '../../../core/model/redact.ts'
import type { Mapping, UserRow } from '../mapping.ts'
import type { Millis } from '../../../core/model/time.ts'

/**
 * A user's own table, read and written through the columns that are mapped and no others. Every name in its SQL was
 * found in the database's catalogue and is quoted; every value is bound.
 */
export interface AdoptedTable {
  readonly mapping: Mapping
  /** What a person should know about it, in sentences: no index on the status, words that nobody mapped. */
  readonly warnings: readonly string[]
  /** A statement failed as it does where the table is no longer what was found: it is to be opened anew. */
  readonly isStale: boolean
  /** The clock of the database that it is in, and since when its server runs (null for SQLite). */
  clock(): Promise<{ now: Millis; serverStartedAt: Millis | null }>
  row(key: string): Promise<AdoptedRow | null>
  /** Newest first by `startedAt` (rows without one last), then by id, the greatest first. */
  rows(filter: RowFilter): Promise<AdoptedRow[]>
  /** How many rows have which word, and for a table of targets in which group. */
  counts(): Promise<{ value: string; group: string | null; count: number }[]>
  /** The ids of all rows, in a fixed order, from after the given one: for a person who typed a short one. */
  keys(after: string | null, limit: number): Promise<string[]>
  /**
   * Writes if every mapped column of the row still is as it was read; null when somebody was faster. Times are written
   * in the form that the column has. Answers the row as it is then. `RefusedError`: this row cannot be written, now or at all.
   */
  change(row: AdoptedRow, change: RowChange): Promise<AdoptedRow | null>
  close(): Promise<void>
}

export type RowFilter = {
  /** Any of these words, in any case; left out: all. */
  readonly statusValues?: readonly string[] | undefined
  readonly source?: string | undefined
  /** With `source`: rows that say nothing of theirs too. */
  readonly orNoSource?: boolean | undefined
  readonly group?: string | undefined
  /** A part of its source (or, of a target, its key), its id or its error, in any case. */
  readonly search?: string | undefined
  readonly startedSince?: Millis | undefined
  /** Rows that come after this one. */
  readonly after?: { readonly startedAt: Millis | null; readonly key: string } | undefined
  readonly limit: number
}

/** A row as it was read: what each mapped column means, and exactly what stood there. */
export type AdoptedRow = {
  /** Its id, as text. */
  readonly key: string
  /** As it stands there. */
  readonly status: string
  readonly source: string | null
  readonly startedAt: Millis | null
  readonly finishedAt: Millis | null
  readonly error: string | null
  readonly heartbeatAt: Millis | null
  readonly activityAt: Millis | null
  readonly owner: string | null
  /** Null counts as 0. */
  readonly extracted: number
  readonly skipped: number
  /** Null: not mapped, or nothing said. */
  readonly done: number | null
  readonly total: number | null
  readonly hasCheckpoint: boolean
  readonly target: {
    readonly key: string
    readonly group: string | null
    readonly url: string | null
    readonly page: number
    readonly pageTarget: number | null
    readonly attempts: number
  }
  /**
   * For the user's functions: mapped columns, and all others that may be read where there is such a function. Without
   * one, a checkpoint's content is not read.
   */
  readonly userRow: UserRow
  /**
   * What stood in each mapped column, by the user's name of it: what the next write is compared with, and can restore.
   * Of a checkpoint only as much as shows that it is another.
   */
  readonly snapshot: Readonly<Record<string, string | number | bigint | null>>
}

/** What is to stand there. Left out: as it is. Columns that are not mapped, or cannot be null, are left as they are. */
export type RowChange = {
  readonly status?: string
  readonly finishedAt?: Millis | null
  readonly error?: string | null
  readonly owner?: null
  readonly heartbeatAt?: null
  /** Exactly what stood in these columns before, from a stamp: for taking something back. Of mapped columns only. */
  readonly restore?: AdoptedRow['snapshot']
}

/**
 * Finds the table and its columns in the catalogue of the database at this address; a `UsageError` says what is not
 * there, is not of a type that can be used, or may not be read or written.
 */
export async function openAdoptedTable(mapping: Mapping, address: string): Promise<AdoptedTable> {
  registerSecrets(passwordsIn(address))
  if (/^postgres(ql)?:\/\//.test(address)) {
    const { openPostgresTable } = await import('./postgres-table.ts')
    return openPostgresTable(mapping, address)
  }
  if (address.startsWith('sqlite:')) {
    const { openSqliteTable } = await import('./sqlite-table.ts')
    return openSqliteTable(mapping, address.slice('sqlite:'.length))
  }
  // Not repeated here: it may hold a password.
  throw new UsageError(
    `adopted.${mapping.name}: the database address is neither sqlite:PATH nor postgres://….`,
  )
}

/** Whether a failure may come of what the catalogue said once: one that is away, or says no, is what it was. */
export function mayBeStale(error: unknown): boolean {
  return !(error instanceof StoreUnavailableError || error instanceof RefusedError)
}
