import {
  messageOf,
  RefusedError,
  StoreUnavailableError,
  UsageError,
} from '../../../core/model/errors.ts'
import { passwordsIn, registerSecrets } from '../../../core/model/redact.ts'
import type { Target } from '../../../core/model/target.ts'
import type { MappedValue, Mapping, TARGET_FIELDS, UserRow } from '../mapping.ts'
import type { Millis } from '../../../core/model/time.ts'
import type { TimeField } from './columns.ts'

/** A value of a column. */
export type Cell = string | number | bigint | null

/**
 * An adopted table. Only mapped columns are read and written. Every name in SQL comes from the database's catalogue and is
 * quoted; every value is bound.
 */
export interface AdoptedTable {
  readonly mapping: Mapping
  /** Such as a missing index on the status. */
  readonly warnings: readonly string[]
  /** A statement failed as if the table was altered: it must be opened again. */
  readonly isStale: boolean
  /** The time of the table's database, and the start of its server (null on SQLite). */
  clock(): Promise<{ now: Millis; serverStartedAt: Millis | null }>
  row(key: string): Promise<AdoptedRow | null>
  /** Newest first by `listedAt` (rows without one last), then by id, the greatest first. */
  rows(filter: RowFilter): Promise<AdoptedRow[]>
  /** For each of these times that is mapped, the row in which it is the latest as the column sorts; none if all are empty. */
  latestRows(fields: readonly TimeField[]): Promise<AdoptedRow[]>
  /** Rows per status, and per group in a table of targets. */
  counts(): Promise<RowCount[]>
  /** The ids of all rows in a fixed order, after the given one. */
  keys(after: string | null, limit: number): Promise<string[]>
  /**
   * Writes the row if no mapped column has changed since it was read. Returns the row after the write; null if it had
   * changed. Times are written in the format of the column. Throws a `RefusedError` if this row cannot be written.
   */
  change(row: AdoptedRow, change: RowChange): Promise<AdoptedRow | null>
  /** Deletes the row if no mapped column has changed since it was read. Returns false if one has. */
  delete(row: AdoptedRow): Promise<boolean>
  close(): Promise<void>
}

export type RowFilter = {
  /** Any of these, ignoring case; default: all. */
  readonly statusValues?: readonly MappedValue[] | undefined
  readonly source?: string | undefined
  /** With `source`: also rows without a source. */
  readonly orNoSource?: boolean | undefined
  readonly group?: string | undefined
  /** Part of the source (of a target: the key), the id or the error, ignoring case. */
  readonly search?: string | undefined
  /** By `listedAt`. */
  readonly since?: Millis | undefined
  /** Only rows after this one. */
  readonly after?: { readonly listedAt: Millis | null; readonly key: string } | undefined
  readonly limit: number
}

/** A row as it was read: the mapped fields, and the exact values. */
export type AdoptedRow = {
  /** The id as text. */
  readonly key: string
  /** The value in the table. */
  readonly status: string
  /** It tells failed rows from succeeded ones if both have the same value. */
  readonly hasError: boolean
  readonly source: string | null
  readonly createdAt: Millis | null
  readonly startedAt: Millis | null
  readonly finishedAt: Millis | null
  readonly error: string | null
  readonly heartbeatAt: Millis | null
  readonly activityAt: Millis | null
  readonly owner: string | null
  readonly host: string | null
  /** Null: not mapped, or no process id. */
  readonly pid: number | null
  /** By which rows are listed: the start, else the creation. */
  readonly listedAt: Millis | null
  /** Null counts as 0. */
  readonly extracted: number
  readonly skipped: number
  /** Null: not mapped, or NULL. */
  readonly done: number | null
  readonly total: number | null
  readonly hasCheckpoint: boolean
  readonly target: Pick<Target, (typeof TARGET_FIELDS)[number]>
  /**
   * For user functions: all readable columns if there is such a function; otherwise the mapped ones, without the content
   * of a checkpoint.
   */
  readonly userRow: UserRow
  /**
   * The value of each mapped column by name: the next write is compared with it, and a revert restores it. A checkpoint
   * is represented by a digest.
   */
  readonly snapshot: Readonly<Record<string, Cell>>
}

/** The status of a row, which only the mapping gives a meaning. */
export type RowStatus = Pick<AdoptedRow, 'status' | 'hasError'>

/** Rows with the same status. `hasError` is false if the mapping does not use it. */
export type RowCount = RowStatus & { readonly group: string | null; readonly count: number }

/** New values. Omitted fields, unmapped columns, and nulls for columns that are not nullable are skipped. */
export type RowChange = {
  readonly status?: string
  readonly finishedAt?: Millis | null
  readonly error?: string | null
  readonly owner?: null
  readonly heartbeatAt?: null
  readonly pid?: null
  /** Previous values of mapped columns, from a snapshot: for a revert. */
  readonly restore?: AdoptedRow['snapshot']
}

/**
 * Finds the table and its columns in the catalogue of this database. Throws a `UsageError` if something is missing, has
 * an unsupported type, or may not be read.
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
  // The address itself is not repeated: it may hold a password.
  throw new UsageError(
    `adopted.${mapping.name}: the database address is neither sqlite:PATH nor postgres://….`,
  )
}

/** Explains that a constraint or a trigger of the user's database refused a change. */
export function refusedChange(error: unknown): RefusedError {
  const message = messageOf(error)
  const hint = /foreign key/i.test(message)
    ? 'Rows of other tables refer to it.'
    : 'Check the statuses and columns of the mapping.'
  return new RefusedError(`The database refused the change: ${message}. ${hint}`)
}

/** Whether an error may be due to an altered table. An unreachable database or a refused change is not. */
export function mayBeStale(error: unknown): boolean {
  return !(error instanceof StoreUnavailableError || error instanceof RefusedError)
}
