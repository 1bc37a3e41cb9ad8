import type { InTransaction } from '../model/checkpoint.ts'
import type { Claim, ClaimedTarget, Outcome } from '../model/claim.ts'
import {
  LeaseLostError,
  messageOf,
  StoppingError,
  UsageError,
  type UnstuckError,
} from '../model/errors.ts'
import type { Emit } from '../model/event.ts'
import {
  NON_NEGATIVE_INTEGER,
  checkArgument,
  checkOptions,
  BOOLEAN,
  FUNCTION,
  optional,
} from '../model/fields.ts'
import type { NewItem } from '../model/item.ts'
import { progressOf } from '../model/run.ts'
import type { Cursor } from '../model/target.ts'
import type { HeartbeatClient } from '../heartbeat/client.ts'
import { withRetry } from '../store/open.ts'
import type { Store } from '../store/store.ts'
import { makeCheckpoint, validateCheckpoint } from './page.ts'

export type RunCheckpoint = {
  page: number
  items?: readonly NewItem[]
  next?: string | null
  pageTarget?: number
  skipped?: number
  lastItemId?: string
  cursor?: unknown
}

export type RunHandleOptions = {
  readonly store: Store
  readonly claimed: ClaimedTarget
  readonly resumed: boolean
  readonly heartbeat?: Pick<HeartbeatClient, 'measure'>
  /** Called once, when the run has ended here. */
  readonly onEnd: () => void
  readonly emit?: Emit | undefined
  /** Claims the run again after its claim was lost. Returns false if that is not possible. */
  readonly reclaim?: () => Promise<boolean>
}

/** A run in the user's own program: its cursor, its checkpoints, its end. */
export class RunHandle {
  readonly id: string
  readonly source: string
  /** True if the run continues earlier work. */
  readonly resumed: boolean
  readonly #options: RunHandleOptions
  #claimed: ClaimedTarget
  readonly #abort = new AbortController()
  /** Fires when retries are pointless: the claim was lost, or the run has ended here. */
  readonly #stopWaiting = new AbortController()
  #position: Cursor
  #isEnding = false
  #hasEnded = false
  #lost: LeaseLostError | null = null

  constructor(options: RunHandleOptions) {
    const { claimed } = options
    this.id = claimed.run
    this.source = claimed.source
    this.resumed = options.resumed
    this.#options = options
    this.#claimed = claimed
    this.#position = claimed
  }

  /** The last saved page; 0 before the first. Continue with the next one. */
  get page(): number {
    return this.#position.page
  }

  get next(): string | null {
    return this.#position.next
  }

  get lastItemId(): string | null {
    return this.#position.lastItemId
  }

  get cursor(): unknown {
    return this.#position.cursor
  }

  /** The expected number of pages, as last reported. */
  get pageTarget(): number | null {
    return this.#position.pageTarget
  }

  /** True after `succeed()`, `fail()` or `release()`. */
  get hasEnded(): boolean {
    return this.#hasEnded
  }

  /** The claim that fences the writes of this run. */
  get claim(): Claim {
    const { target, epoch, claimId, worker } = this.#claimed
    return { target, epoch, claimId, worker }
  }

  /** The error that ended the claim; null while it is held. */
  get lost(): LeaseLostError | null {
    return this.#lost
  }

  /** Fires on SIGTERM and when the claim or the database is lost. Pass it to `fetch`, and check it before each page. */
  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /**
   * Saves items and cursor in one transaction, with what `inTransaction` writes. Returns the number of the checkpoint.
   * Saving the last page again, with the same content, changes nothing and returns its number.
   */
  async checkpoint(report: RunCheckpoint, inTransaction?: InTransaction): Promise<number> {
    validateCheckpoint(report)
    checkArgument('checkpoint()', 'inTransaction', inTransaction, optional(FUNCTION))
    let checkpoint = this.#makeCheckpoint(report)
    const saved = await this.#write(async () => {
      checkpoint = this.#makeCheckpoint(report)
      const save = (): Promise<Outcome<{ seq: number }>[]> =>
        this.#options.store.checkpoint([checkpoint], inTransaction)
      const [outcome] = await (this.#options.heartbeat?.measure('checkpoint', save) ?? save())
      return outcome!
    })
    this.#position = {
      seq: this.#valueOf(saved).seq,
      page: report.page,
      next: checkpoint.next,
      pageTarget: report.pageTarget ?? this.#position.pageTarget,
      lastItemId: checkpoint.lastItemId ?? this.#position.lastItemId,
      cursor: checkpoint.cursor === undefined ? this.#position.cursor : checkpoint.cursor,
    }
    const { run, target, key } = this.#claimed
    const { page, replaced: count = 0 } = checkpoint
    if (count > 0) this.#options.emit?.({ type: 'text_replaced', run, target, key, page, count })
    return this.#position.seq
  }

  #makeCheckpoint(report: RunCheckpoint): ReturnType<typeof makeCheckpoint> {
    // A page that is sent again after a lost reply, perhaps by an earlier process, follows the same page as before.
    const seq = report.page === this.#position.page ? this.#position.seq - 1 : this.#position.seq
    return makeCheckpoint(this.#claimed, { ...this.#position, seq }, { ...report, done: false })
  }

  /** Reports progress in units of the program. */
  async progress(progress: { done: number; total: number }): Promise<void> {
    checkOptions('progress()', progress, {
      done: NON_NEGATIVE_INTEGER,
      total: NON_NEGATIVE_INTEGER,
    })
    this.#valueOf(await this.#write(() => this.#options.store.reportProgress(this.claim, progress)))
  }

  /** Returns the progress that was last reported, also before a resume; else 0 of 1. */
  async progressSoFar(): Promise<{ done: number; total: number }> {
    const run = await withRetry(() => this.#options.store.run(this.id), this.#stopWaiting.signal)
    if (!run) throw new LeaseLostError(this.claim, 'its run was deleted')
    return progressOf(run)
  }

  async succeed(): Promise<void> {
    this.#isEnding = true
    await this.#end(
      await this.#write(async () => (await this.#options.store.finish([this.claim]))[0]!),
    )
  }

  /** Ends the run as failed. With `retry` it stays live: the next `begin` continues from the last checkpoint. */
  async fail(error: unknown, options: { retry?: boolean } = {}): Promise<void> {
    checkOptions('fail()', options, { retry: optional(BOOLEAN) })
    const { retry = false } = options
    this.#isEnding = true
    const becomes = retry ? { retryInMs: 0 } : 'failed'
    const failed = async (): Promise<Outcome<void>> =>
      (await this.#options.store.fail([{ ...this.claim, error: messageOf(error), becomes }]))[0]!
    await this.#end(await this.#write(failed))
  }

  /** Releases the run unfinished: the next `begin` continues from the last checkpoint. */
  async release(): Promise<void> {
    if (this.#hasEnded) return
    this.#isEnding = true
    this.#stopWaiting.abort(this.#endedError)
    const [outcome] = await this.#options.store.release([this.claim])
    // The claim was lost already: there is nothing to release.
    await this.#end(outcome!.ok ? outcome! : { ok: true, value: undefined })
  }

  /** Releases the run at the end of an `await using` block, unless it has ended. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }

  /** Used by Unstuck when the process stops. */
  stop(because: string): void {
    this.#abort.abort(new StoppingError(because))
  }

  /** Used by Unstuck when the database is lost: nothing can be saved any more. */
  loseStore(error: UnstuckError): void {
    this.#abort.abort(error)
    this.#stopWaiting.abort(error)
  }

  /** Used by Unstuck after the run was claimed again: continues from its stored cursor. */
  resumeWith(claimed: ClaimedTarget): void {
    this.#claimed = claimed
    this.#position = claimed
  }

  /** Used by Unstuck when a heartbeat finds the claim lost. Ignored while the run is being ended: the fence decides then. */
  loseLease(): void {
    if (this.#isEnding) return
    this.#onLeaseLost(
      new LeaseLostError(this.claim, 'it was taken back while this process was silent'),
    )
  }

  async #end(outcome: Outcome<void>): Promise<void> {
    this.#hasEnded = true
    this.#stopWaiting.abort(this.#endedError)
    this.#options.onEnd()
    this.#valueOf(outcome)
    await withRetry(() => this.#options.store.settle(this.id))
  }

  #whenAvailable<T>(call: () => Promise<T>): Promise<T> {
    if (this.#hasEnded) throw this.#endedError
    // A stop lets the write in progress finish; a lost claim does not.
    return withRetry(call, this.#stopWaiting.signal)
  }

  /** Repeats a write once if it was refused for a lost claim and the run could be claimed again. */
  async #write<T>(call: () => Promise<Outcome<T>>): Promise<Outcome<T>> {
    const outcome = await this.#whenAvailable(call)
    const isLost = !outcome.ok && outcome.error instanceof LeaseLostError
    return isLost && (await this.#options.reclaim?.()) ? this.#whenAvailable(call) : outcome
  }

  get #endedError(): UsageError {
    return new UsageError(`Run ${this.id} has already ended here.`)
  }

  #onLeaseLost(lost: LeaseLostError): void {
    this.#lost ??= lost
    this.#abort.abort(lost)
    this.#stopWaiting.abort(lost)
  }

  #valueOf<T>(outcome: Outcome<T>): T {
    if (outcome.ok) return outcome.value
    if (outcome.error instanceof LeaseLostError) this.#onLeaseLost(outcome.error)
    throw outcome.error
  }
}
