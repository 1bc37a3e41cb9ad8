import type { Checkpoint } from '../../../core/model/checkpoint.ts'
import { UsageError } from '../../../core/model/errors.ts'
import type { StoreExtension } from '../../../core/store/store.ts'

/** A statement for the caller's own connection, and the value of its one parameter. */
export type CheckpointCall = { readonly statement: string; readonly parameter: string }

/** A page's identity: what settles a COMMIT of unknown outcome. */
export type PageIdentity = Pick<Checkpoint, 'claim' | 'expectedSeq' | 'hash'>

/** Pages that a program saves in a transaction of its own connection, with rows of its own tables. PostgreSQL only. */
export interface PageTransactions {
  /** Returns the first statement of such a transaction. It returns the saved sequence number. Throws on SQLite. */
  checkpointCall(page: Checkpoint): CheckpointCall
  /**
   * Returns true if the page is in, false if its transaction has ended without it and the claim is still held. Waits a few
   * seconds for a transaction in progress, then throws `StoreUnavailableError`: call it again. Throws `LeaseLostError` when
   * the claim is lost, whether the page is in or not.
   */
  isSaved(page: PageIdentity): Promise<boolean>
}

export const PAGE_TRANSACTIONS: StoreExtension<PageTransactions> = {
  sqlite: async () => () => ({ checkpointCall: refuse, isSaved: async () => refuse() }),
  postgres: async () => (await import('./page-transactions-postgres.ts')).pageTransactionMethods,
}

function refuse(): never {
  throw new UsageError(
    'Saving a page in a transaction of your own connection needs PostgreSQL; this database is SQLite. Save the page with a ' +
      'checkpoint, or use a database postgres://….',
  )
}
