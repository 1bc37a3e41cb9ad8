import type { OperatorStore } from './operator-store.ts'
import type { Reads } from './reads.ts'
import type { Database as PostgresDatabase } from './postgres/database.ts'
import type { Database as SqliteDatabase } from './sqlite/database.ts'
import type { WorkerStore } from './worker-store.ts'

export type * from './operator-store.ts'
export type * from './reads.ts'
export type * from './worker-store.ts'

/**
 * The database. The comment above each method states what holds after it; `conformance/` tests it on every engine. Code
 * takes the narrowest part that it needs.
 *
 * Writes take batches and return one result per member: a fenced page does not fail the others. After
 * `StoreUnavailableError` a call may be repeated with the same arguments: nothing is done twice.
 */
export interface Store extends WorkerStore, OperatorStore, Reads {
  readonly engine: 'sqlite' | 'postgres'
  /** The address, without secrets. */
  readonly location: string
  /** Problems of the setup that do not stop work, as sentences. */
  readonly warnings: readonly string[]
  /** Users' own tables that cannot be read now: results lack what is in them. */
  readonly unreadable: readonly UnreadableTable[]
  /** Opens a feature's own statements on this store's connections, and so inside its transactions. @internal */
  extend<T extends object>(extension: StoreExtension<T>): Promise<T>
}

/** A table by its name in the config. */
export type UnreadableTable = { readonly table: string; readonly because: string }

/** The statements of one feature. An engine loads its part on demand; it imports that engine's `kit.ts`. @internal */
export type StoreExtension<T extends object> = {
  sqlite(): Promise<(db: SqliteDatabase) => T>
  postgres(): Promise<(db: PostgresDatabase) => T>
  /** Methods that redact and limit their text before the engine gets it, as `cleanInput` does for the store's own. */
  clean?(store: T): Partial<T>
}
