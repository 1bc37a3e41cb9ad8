import { UsageError } from '../../../core/model/errors.ts'
import type { FoundTable } from './found-table.ts'

/** What there is in a database, without a change to it. */
export type DatabaseScan = {
  /** The address as people may see it. */
  readonly location: string
  /** Less Unstuck's own, and those that may not be read. */
  readonly tables: readonly FoundTable[]
  /** What is there, but not for this login; null: there are no logins. */
  readonly denied: DeniedTables | null
}

export type DeniedTables = {
  readonly login: string
  /** Of many the first. */
  readonly tables: readonly { readonly schema: string; readonly table: string }[]
}

/**
 * Tables of a database, each column that may hold a status with its words. `only`: looks at none but this, and at the
 * words of all its columns.
 */
export async function findTables(address: string, only?: string): Promise<DatabaseScan> {
  if (/^postgres(ql)?:\/\//.test(address)) {
    const { findPostgresTables } = await import('./find-postgres-tables.ts')
    return findPostgresTables(address, only)
  }
  if (address.startsWith('sqlite:')) {
    const { findSqliteTables } = await import('./find-sqlite-tables.ts')
    return findSqliteTables(address.slice('sqlite:'.length), only)
  }
  // Not repeated here: it may hold a password.
  throw new UsageError('The database address is neither sqlite:PATH nor postgres://….')
}
