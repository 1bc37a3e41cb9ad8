import type { InTransaction } from '../model/checkpoint.ts'
import type { Claim, Claimed, Outcome } from '../model/claim.ts'
import { LeaseLost, messageOf, Stopping, UsageError } from '../model/errors.ts'
import type { NewItem } from '../model/item.ts'
import type { Cursor } from '../model/target.ts'
import { whenAvailable } from '../store/open.ts'
import type { Store } from '../store/store.ts'
import { makeCheckpoint } from './page.ts'

export type RunCheckpoint = {
  page: number
  items?: readonly NewItem[]
  next?: string | null
  pageTarget?: number
  skipped?: number
  lastItemId?: string
  cursor?: unknown
}

/** A run in one's own code: its cursor, its checkpoints, its end. */
export class RunHandle {
  readonly id: string
  readonly source: string
  /** Earlier work is being taken up. */
  readonly resumed: boolean
  readonly #store: Store
  readonly #claimed: Claimed
  readonly #abort = new AbortController()
  readonly #onEnd: () => void
  #at: Cursor
  #isOver = false

  constructor(store: Store, claimed: Claimed, resumed: boolean, onEnd: () => void) {
    this.id = claimed.run
    this.source = claimed.source
    this.resumed = resumed
    this.#store = store
    this.#claimed = claimed
    this.#onEnd = onEnd
    this.#at = claimed
  }

  /** The last completed page; 0 before the first. Go on with the next one. */
  get page(): number {
    return this.#at.page
  }

  get next(): string | null {
    return this.#at.next
  }

  get lastItemId(): string | null {
    return this.#at.lastItemId
  }

  get cursor(): unknown {
    return this.#at.cursor
  }

  /** Fires on SIGTERM and when the lease is lost. Hand it to `fetch`; look at it before each page. */
  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /** Saves items and cursor, both or neither; what `inTransaction` writes goes with them. Answers the checkpoint's number. */
  async checkpoint(report: RunCheckpoint, inTransaction?: InTransaction): Promise<number> {
    if (!Number.isSafeInteger(report?.page) || report.page < 1) {
      throw new UsageError('checkpoint() needs a page: a whole number from 1.')
    }
    const checkpoint = makeCheckpoint(this.#claimed, this.#at, { ...report, done: false })
    const [saved] = await this.#patiently(() => this.#store.checkpoint([checkpoint], inTransaction))
    const seq = this.#valueOf(saved!)
    this.#at = {
      seq,
      page: report.page,
      next: checkpoint.next,
      pageTarget: report.pageTarget ?? this.#at.pageTarget,
      lastItemId: report.lastItemId ?? this.#at.lastItemId,
      cursor: report.cursor === undefined ? this.#at.cursor : report.cursor,
    }
    return seq
  }

  /** How far it is, in its own units. */
  async progress(progress: { done: number; total: number }): Promise<void> {
    this.#valueOf(await this.#patiently(() => this.#store.reportProgress(this.#claim(), progress)))
  }

  async succeed(): Promise<void> {
    const [outcome] = await this.#patiently(() => this.#store.finish([this.#claim()]))
    await this.#end(outcome!)
  }

  async fail(error: unknown): Promise<void> {
    const failure = { ...this.#claim(), error: messageOf(error), retryInMs: null }
    const [outcome] = await this.#patiently(() => this.#store.fail([failure]))
    await this.#end(outcome!)
  }

  /** Hands it back unfinished: the next `begin` goes on from the last checkpoint. */
  async release(): Promise<void> {
    if (this.#isOver) return
    const [outcome] = await this.#store.release([this.#claim()])
    // Somebody else has it already: nothing is left to hand back.
    await this.#end(outcome!.ok ? outcome! : { ok: true, value: undefined })
  }

  /** `await using run = …`: left without an end, it is handed back. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }

  /** Used by Unstuck: the process is to stop. */
  stop(because: string): void {
    this.#abort.abort(new Stopping(because))
  }

  /** Used by Unstuck: a beat found that somebody else has it. */
  lose(): void {
    this.#abort.abort(
      new LeaseLost(this.#claim(), 'it was taken back while this process was silent'),
    )
  }

  async #end(outcome: Outcome<void>): Promise<void> {
    this.#isOver = true
    this.#onEnd()
    this.#valueOf(outcome)
    await whenAvailable(() => this.#store.settle(this.id), NEVER)
  }

  #patiently<T>(call: () => Promise<T>): Promise<T> {
    if (this.#isOver) throw new UsageError(`Run ${this.id} has already ended here.`)
    return whenAvailable(call, this.#lost)
  }

  /** A stop lets the write in hand finish; a lost lease does not. */
  get #lost(): AbortSignal {
    return this.#abort.signal.reason instanceof LeaseLost ? this.#abort.signal : NEVER
  }

  #valueOf<T>(outcome: Outcome<T>): T {
    if (outcome.ok) return outcome.value
    if (outcome.error instanceof LeaseLost) this.#abort.abort(outcome.error)
    throw outcome.error
  }

  #claim(): Claim {
    const { target, epoch, claimId, worker } = this.#claimed
    return { target, epoch, claimId, worker }
  }
}

const NEVER = new AbortController().signal
