import type { Store, StoreExtension } from '../core/store/store.ts'

/** How the tests get databases of an engine, and reach behind its back. */
export type Engine = {
  readonly name: Store['engine']
  /** Whether a NUL character in an item's data is refused. SQLite keeps it. */
  readonly rejectsNul: boolean
  /** The kind of presence its workers hold. */
  readonly presence: 'file' | 'session'
  /** The n-th placeholder of a user's own statement, from 1. */
  placeholder(n: number): string
  /** A fresh database with the triggers of the legal moves in it. */
  fresh(): Promise<TestDatabase>
  /** A database that no store has opened yet. */
  empty(): Promise<TestDatabase>
}

export type TestDatabase = AsyncDisposable & {
  readonly url: string
  /** One more store on it, with connections of its own; closed together with the database. */
  open(): Promise<Store>
  /** The name of one of our tables in a statement. */
  table(name: string): string
  /** Statements behind the store's back. */
  raw(text: string): Promise<Record<string, unknown>[]>
  /** Moves time: whatever has happened so far is that much longer ago. */
  advanceClock(ms: number): Promise<void>
}

/** Closes the stores that were opened on a database, then the database. */
export async function disposeAll(
  stores: readonly Store[],
  drop: () => Promise<void> | void,
): Promise<void> {
  await Promise.all(stores.map((store) => store.close()))
  await drop()
}

/** Opens a store with a feature's methods beside its own. */
export async function openExtended<T extends object>(
  db: TestDatabase,
  extension: StoreExtension<T>,
): Promise<Store & T> {
  const store = await db.open()
  return { ...store, ...(await store.extend(extension)) }
}
