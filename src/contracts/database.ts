import type { OpenOptions } from '../core/store/open.ts'
import type { Store } from '../core/store/store.ts'

/** The database of a command. It is opened on first use and closed when the command has ended. */
export type Database = {
  locate(): Promise<ResolvedAddress>
  address(): Promise<string>
  /** The address without its password. */
  where(): Promise<string>
  /** For commands that work: creates a missing database. Without the runs that features add. */
  open(options?: OpenOptions): Promise<Store>
  /**
   * The same for commands that run for long. Waits while the database does not answer, up to the limit: a machine may
   * start it after its workers.
   */
  openWithin(limitMs: number, log: (line: string) => void): Promise<Store>
  /** The same with the runs that features add, such as rows of the user's own tables. */
  openAll(options?: OpenOptions): Promise<Store>
  /** For commands that read: null if nothing has run yet and the config has no tables. Creates nothing. */
  openIfExists(): Promise<Store | null>
  /** For commands about something that must exist. Throws if nothing has run yet. */
  openExisting(): Promise<Store>
  close(): Promise<void>
}

export type ResolvedAddress = {
  /** A path in it is absolute. */
  readonly address: string
  /** Where it was set. */
  readonly from: '--db' | 'UNSTUCK_DB' | 'config' | 'default'
}
