import { claimOf, type Claim, type ClaimedTarget } from '../../../core/model/claim.ts'
import type { Checkpoint } from '../../../core/model/checkpoint.ts'
import type { TargetId } from '../../../core/model/id.ts'
import type { Cursor } from '../../../core/model/target.ts'
import { cursorAfter, makeCheckpoint, type PageReport } from '../../../core/worker/page.ts'
import { resolveAddresses } from '../../../core/worker/page-context.ts'
import { transactionOpen } from './errors.ts'
import type { TransactionEnd } from './transactions.ts'

/** A claimed target that a command works on: its cursor, and its calls one after the other. */
export class HeldTarget {
  readonly claimed: ClaimedTarget
  /** The page of the command's own transaction, while it may be open. */
  transaction: Checkpoint | null = null
  #lastTransaction: TransactionEnd | null = null
  #position: Cursor
  #last: Promise<unknown> = Promise.resolve()

  constructor(claimed: ClaimedTarget) {
    this.claimed = claimed
    this.#position = claimed
  }

  get id(): TargetId {
    return this.claimed.target
  }

  get claim(): Claim {
    return claimOf(this.claimed)
  }

  /** The last saved page; 0 before the first. */
  get page(): number {
    return this.#position.page
  }

  /** Errors in a row before the page in progress. */
  get errors(): number {
    return this.#position.seq > this.claimed.seq ? 0 : this.claimed.errors
  }

  /** Returns the checkpoint of a page, after the last saved one; or the same checkpoint again for a page that is sent twice. */
  checkpointOf(report: PageReport): Checkpoint {
    const { seq, page, next } = this.#position
    const isAgain = report.page === page && seq > 0
    const resolved = resolveAddresses(report, next ?? this.claimed.url)
    const position = { ...this.#position, seq: isAgain ? seq - 1 : seq }
    return makeCheckpoint(this.claimed, position, resolved)
  }

  /** Moves the cursor after a checkpoint was saved. */
  advance(checkpoint: Checkpoint, seq: number): void {
    this.#position = cursorAfter(this.#position, checkpoint, seq)
  }

  /** What became of the last transaction, for a call that is repeated. */
  get lastTransaction(): TransactionEnd | null {
    return this.#lastTransaction
  }

  endTransaction(end: TransactionEnd): void {
    this.transaction = null
    this.#lastTransaction = end
  }

  /** Throws while the command's own transaction may be open: a write would wait for its end. */
  assertNoTransaction(): void {
    if (this.transaction) throw transactionOpen()
  }

  /** Returns what the command needs to continue. */
  toJson(): Record<string, unknown> {
    const { target: id, key, group, url, data } = this.claimed
    const { page, next, lastItemId, cursor, pageTarget } = this.#position
    const attempt = this.errors + 1
    return { id, key, group, url, data, page, next, lastItemId, cursor, pageTarget, attempt }
  }

  /** Waits until the calls before this one have ended, and runs it. Targets of one call wait for their turn together. */
  static async inTurn<T>(targets: readonly HeldTarget[], call: () => Promise<T>): Promise<T> {
    const before = Promise.all(targets.map((target) => target.#last))
    const running = before.then(call)
    const settled = running.catch(() => {})
    for (const target of targets) target.#last = settled
    return running
  }
}
