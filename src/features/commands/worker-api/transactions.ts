import type { Checkpoint } from '../../../core/model/checkpoint.ts'
import { LeaseLostError, UsageError } from '../../../core/model/errors.ts'
import type { TargetId } from '../../../core/model/id.ts'
import type { Store } from '../../../core/store/store.ts'
import type { PageReport } from '../../../core/worker/page.ts'
import { PAGE_TRANSACTIONS, type CheckpointCall } from '../store/page-transactions.ts'
import { needsPostgres, noTransaction } from './errors.ts'
import { HeldTarget } from './held-target.ts'
import type { HeldTargets } from './held-targets.ts'

export type TransactionsOptions = {
  readonly store: Store
  readonly held: HeldTargets
  readonly retry: <T>(call: () => Promise<T>) => Promise<T>
  readonly onSaved: (held: HeldTarget, page: Checkpoint, seq: number) => void
}

/** What became of the page of a transaction. */
export type TransactionEnd = {
  readonly saved: boolean
  readonly seq: number
  readonly done: boolean
}

/** Pages that the command saves in transactions of its own connection, together with rows of its own tables. */
export class CommandTransactions {
  readonly #options: TransactionsOptions

  constructor(options: TransactionsOptions) {
    this.#options = options
  }

  /** Returns the first statement of the transaction. Until its end the target takes no other call. */
  async begin(
    target: TargetId,
    report: PageReport,
  ): Promise<CheckpointCall & { readonly seq: number }> {
    const { store, held: targets } = this.#options
    const held = targets.find(target)
    return HeldTarget.inTurn([held], async () => {
      held.assertNoTransaction()
      if (!targets.isHeld(held)) targets.refuse(target)
      const page = held.checkpointOf(report)
      const call = (await store.extend(PAGE_TRANSACTIONS)).checkpointCall(page)
      held.transaction = page
      return { ...call, seq: page.expectedSeq + 1 }
    }).catch((error: unknown) => {
      throw error instanceof UsageError ? needsPostgres(error.message) : error
    })
  }

  /** Finds out whether the transaction was committed. Waits for one that is in progress. */
  async end(target: TargetId): Promise<TransactionEnd> {
    const { store, held: targets, retry, onSaved } = this.#options
    const held = targets.find(target)
    return HeldTarget.inTurn([held], async () => {
      const { transaction: page, lastTransaction } = held
      if (!page && lastTransaction) return lastTransaction
      if (!page) throw noTransaction()
      const transactions = await store.extend(PAGE_TRANSACTIONS)
      const saved = await retry(() => transactions.isSaved(page)).catch((error: unknown) => {
        if (error instanceof LeaseLostError) targets.drop(held, error)
        throw error
      })
      const seq = page.expectedSeq + 1
      held.endTransaction({ saved, seq, done: saved && page.done })
      if (saved) onSaved(held, page, seq)
      return held.lastTransaction!
    })
  }
}
