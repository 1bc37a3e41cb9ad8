import type { InTransaction } from '../model/checkpoint.ts'
import { claimOf, type Claim, type ClaimedTarget, type Outcome } from '../model/claim.ts'
import {
  LeaseLostError,
  messageOf,
  PageRejectedError,
  StoppingError,
  UsageError,
  type UnstuckError,
} from '../model/errors.ts'
import type { Emit } from '../model/event.ts'
import {
  NON_NEGATIVE_INTEGER,
  checkCall,
  BOOLEAN,
  FUNCTION,
  integerBetween,
  optional,
} from '../model/fields.ts'
import { INTEGER_MAX } from '../model/limits.ts'
import type { Run } from '../model/run.ts'
import type { StandardSchema } from '../model/standard-schema.ts'
import type { Cursor } from '../model/target.ts'
import type { HeartbeatClient } from '../heartbeat/client.ts'
import { withRetry } from '../store/open.ts'
import type { Store } from '../store/store.ts'
import type { PageFields } from './crawl-options.ts'
import { cursorAfter, makeCheckpoint, validateCheckpoint, type PageReport } from './page.ts'
import { applyItemSchema } from './page-context.ts'

/** A page as it is passed to `checkpoint()`. */
export type RunCheckpoint = Omit<PageFields, 'inTransaction'> & {
  page: number
  next?: string | URL | null | undefined
}

export type RunHandleOptions = {
  readonly store: Store
  readonly claimed: ClaimedTarget
  readonly resumed: boolean
  /** The cursor before the first page. */
  readonly initialCursor?: unknown
  /** Checks and converts the data of each item. */
  readonly itemSchema?: StandardSchema | undefined
  /** What was reported before a resume. */
  readonly progress?: Run['progress']
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
  #progress: Run['progress']
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
    this.#progress = options.progress ?? null
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
    return this.#position.cursor ?? this.#options.initialCursor ?? null
  }

  /** The expected number of pages, as last reported. */
  get pageTarget(): number | null {
    return this.#position.pageTarget
  }

  /** True after `succeed()`, `fail()` or `release()`. */
  get ended(): boolean {
    return this.#hasEnded
  }

  get done(): number | null {
    return this.#progress?.done ?? null
  }

  get total(): number | null {
    return this.#progress?.total ?? null
  }

  /** The claim that fences the writes of this run. */
  get claim(): Claim {
    return claimOf(this.#claimed)
  }

  /** The error that ended the claim; null while it is held. */
  get lost(): LeaseLostError | null {
    return this.#lost
  }

  /** Fires on SIGTERM and when the claim or the database is lost. Pass it to `fetch`, and check it before each page. */
  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /** Returns the numbers of the pages still to do. Throws the reason of `signal` once the run must stop. */
  *pages(options: { to?: number | undefined } = {}): Generator<number, void, void> {
    checkCall('pages()', options, { to: optional(integerBetween(0)) })
    const { to = INTEGER_MAX } = options
    for (let page = this.page + 1; page <= to; page = Math.max(page, this.page) + 1) {
      this.signal.throwIfAborted()
      yield page
    }
  }

  /**
   * Saves items and cursor in one transaction, with what `inTransaction` writes. Returns the number of the checkpoint.
   * Saving the last page again, with the same content, changes nothing and returns its number.
   */
  async checkpoint(given: RunCheckpoint, inTransaction?: InTransaction): Promise<{ seq: number }> {
    const { itemSchema } = this.#options
    const report = await fitItems(itemSchema, validateCheckpoint(given))
    checkCall('checkpoint()', {}, {}, { inTransaction: [inTransaction, optional(FUNCTION)] })
    let checkpoint = this.#makeCheckpoint(report)
    const saved = await this.#write(async () => {
      checkpoint = this.#makeCheckpoint(report)
      const save = (): Promise<Outcome<{ seq: number }>[]> =>
        this.#options.store.checkpoint([checkpoint], inTransaction)
      const [outcome] = await (this.#options.heartbeat?.measure('checkpoint', save) ?? save())
      return outcome!
    })
    this.#position = cursorAfter(this.#position, checkpoint, this.#valueOf(saved).seq)
    const { run, target, key } = this.#claimed
    const { page, replaced: count = 0 } = checkpoint
    if (count > 0) this.#options.emit?.({ type: 'text_replaced', run, target, key, page, count })
    return { seq: this.#position.seq }
  }

  #makeCheckpoint(report: Omit<PageReport, 'done'>): ReturnType<typeof makeCheckpoint> {
    // A page that is sent again after a lost reply, perhaps by an earlier process, follows the same page as before.
    const seq = report.page === this.#position.page ? this.#position.seq - 1 : this.#position.seq
    return makeCheckpoint(this.#claimed, { ...this.#position, seq }, { ...report, done: false })
  }

  /** Reports progress in units of the program. */
  async progress(progress: { done: number; total: number }): Promise<void> {
    checkCall('progress()', progress, {
      done: NON_NEGATIVE_INTEGER,
      total: NON_NEGATIVE_INTEGER,
    })
    this.#valueOf(await this.#write(() => this.#options.store.reportProgress(this.claim, progress)))
    this.#progress = progress
  }

  async succeed(): Promise<void> {
    this.#isEnding = true
    await this.#end(
      await this.#write(async () => (await this.#options.store.finish([this.claim]))[0]!),
    )
  }

  /** Ends the run as failed. With `retry` it stays live: the next `begin` continues from the last checkpoint. */
  async fail(error: unknown, options: { retry?: boolean } = {}): Promise<void> {
    checkCall('fail()', options, { retry: optional(BOOLEAN) })
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
      new LeaseLostError(this.claim, 'the claim was revoked while this process was silent'),
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

/** Items that do not fit are rejected: the program that reports them decides whether to try again. */
async function fitItems<R extends Pick<PageReport, 'page' | 'items'>>(
  schema: StandardSchema | undefined,
  report: R,
): Promise<R> {
  if (!schema || !report.items) return report
  try {
    return { ...report, items: await applyItemSchema(schema, report.items, report.page) }
  } catch (error) {
    throw new PageRejectedError(messageOf(error), { page: report.page })
  }
}
