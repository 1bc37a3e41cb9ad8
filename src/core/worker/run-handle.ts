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
  /** Earlier work is being taken up. */
  readonly resumed: boolean
  readonly #options: RunHandleOptions
  #claimed: ClaimedTarget
  readonly #abort = new AbortController()
  /** Fires when waiting for the database is in vain: the run is somebody else's by now, or has ended here. */
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

  /** The last completed page; 0 before the first. Go on with the next one. */
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

  /** How many pages there will be, as far as it was said. */
  get pageTarget(): number | null {
    return this.#position.pageTarget
  }

  /** It was finished, failed or handed back here. */
  get hasEnded(): boolean {
    return this.#hasEnded
  }

  /** The claim it writes with. */
  get claim(): Claim {
    const { target, epoch, claimId, worker } = this.#claimed
    return { target, epoch, claimId, worker }
  }

  /** Why it is no longer ours; null while it is. */
  get lost(): LeaseLostError | null {
    return this.#lost
  }

  /** Fires on SIGTERM and when the lease or the database is lost. Hand it to `fetch`; look at it before each page. */
  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /**
   * Saves items and cursor, both or neither; what `inTransaction` writes goes with them. Answers the checkpoint's number.
   * The last page again, with the same content, is answered with its number and changes nothing, whoever saved it.
   */
  async checkpoint(report: RunCheckpoint, inTransaction?: InTransaction): Promise<number> {
    validateCheckpoint(report)
    checkArgument('checkpoint()', 'inTransaction', inTransaction, optional(FUNCTION))
    let checkpoint = this.#makeCheckpoint(report)
    const saved = await this.#write(async () => {
      checkpoint = this.#makeCheckpoint(report)
      const save = (): Promise<Outcome<number>[]> =>
        this.#options.store.checkpoint([checkpoint], inTransaction)
      const [outcome] = await (this.#options.heartbeat?.measure('checkpoint', save) ?? save())
      return outcome!
    })
    this.#position = {
      seq: this.#valueOf(saved),
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
    // Sent again after its answer got lost, perhaps by the process before this one: then it follows what it followed.
    const seq = report.page === this.#position.page ? this.#position.seq - 1 : this.#position.seq
    return makeCheckpoint(this.#claimed, { ...this.#position, seq }, { ...report, done: false })
  }

  /** How far it is, in its own units. */
  async progress(progress: { done: number; total: number }): Promise<void> {
    checkOptions('progress()', progress, {
      done: NON_NEGATIVE_INTEGER,
      total: NON_NEGATIVE_INTEGER,
    })
    this.#valueOf(await this.#write(() => this.#options.store.reportProgress(this.claim, progress)))
  }

  /** How far it said it is, perhaps before it was resumed; else 0 of 1. */
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

  /** It could not go on. With `retry` it is back in line: the next `begin` goes on from the last checkpoint. */
  async fail(error: unknown, options: { retry?: boolean } = {}): Promise<void> {
    checkOptions('fail()', options, { retry: optional(BOOLEAN) })
    const { retry = false } = options
    this.#isEnding = true
    const failure = { error: messageOf(error), retryInMs: retry ? 0 : null }
    const failed = async (): Promise<Outcome<void>> =>
      (await this.#options.store.fail([{ ...this.claim, ...failure }]))[0]!
    await this.#end(await this.#write(failed))
  }

  /** Hands it back unfinished: the next `begin` goes on from the last checkpoint. */
  async release(): Promise<void> {
    if (this.#hasEnded) return
    this.#isEnding = true
    this.#stopWaiting.abort(this.#endedError)
    const [outcome] = await this.#options.store.release([this.claim])
    // Somebody else has it already: nothing is left to hand back.
    await this.#end(outcome!.ok ? outcome! : { ok: true, value: undefined })
  }

  /** `await using run = …`: left without an end, it is handed back. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }

  /** Used by Unstuck: the process is to stop. */
  stop(because: string): void {
    this.#abort.abort(new StoppingError(because))
  }

  /** Used by Unstuck: nothing more can be saved, so waiting for the database is in vain as well. */
  loseStore(error: UnstuckError): void {
    this.#abort.abort(error)
    this.#stopWaiting.abort(error)
  }

  /** Used by Unstuck: it was claimed again, and goes on from where it stands now. */
  resumeWith(claimed: ClaimedTarget): void {
    this.#claimed = claimed
    this.#position = claimed
  }

  /** Used by Unstuck: a beat found that somebody else has it. While it is being ended, nobody need: the fence decides. */
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
    // A stop lets the write in hand finish; a lost lease does not.
    return withRetry(call, this.#stopWaiting.signal)
  }

  /** A write that is refused because the claim was lost is sent once more if the run could be claimed again. */
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
