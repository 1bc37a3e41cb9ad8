import type { InTransaction } from '../model/checkpoint.ts'
import type { Claim, Claimed, Outcome } from '../model/claim.ts'
import { LeaseLost, messageOf, Stopping, UsageError, type UnstuckError } from '../model/errors.ts'
import type { Emit } from '../model/event.ts'
import { AMOUNT, checkArgument, checkOptions, FLAG, FUNCTION, optional } from '../model/fields.ts'
import type { NewItem } from '../model/item.ts'
import { doneOf } from '../model/run.ts'
import type { Cursor } from '../model/target.ts'
import { whenAvailable } from '../store/open.ts'
import type { Store } from '../store/store.ts'
import { makeCheckpoint, readReport } from './page.ts'

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
  readonly #claimAgain: () => Promise<boolean>
  #claimed: Claimed
  readonly #abort = new AbortController()
  /** Fires when waiting for the database is in vain: the run is somebody else's by now, or has ended here. */
  readonly #inVain = new AbortController()
  readonly #onEnd: () => void
  readonly #emit: Emit
  #at: Cursor
  #isEnding = false
  #isOver = false
  #lost: LeaseLost | null = null

  constructor(
    store: Store,
    claimed: Claimed,
    resumed: boolean,
    onEnd: () => void,
    emit: Emit = () => {},
    claimAgain = async (): Promise<boolean> => false,
  ) {
    this.id = claimed.run
    this.source = claimed.source
    this.resumed = resumed
    this.#store = store
    this.#claimed = claimed
    this.#onEnd = onEnd
    this.#claimAgain = claimAgain
    this.#emit = emit
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

  /** How many pages there will be, as far as it was said. */
  get pageTarget(): number | null {
    return this.#at.pageTarget
  }

  /** It was finished, failed or handed back here. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** The claim it writes with. */
  get claim(): Claim {
    const { target, epoch, claimId, worker } = this.#claimed
    return { target, epoch, claimId, worker }
  }

  /** Why it is no longer ours; null while it is. */
  get lost(): LeaseLost | null {
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
    readReport(report)
    checkArgument('checkpoint()', 'inTransaction', inTransaction, optional(FUNCTION))
    let checkpoint = this.#makeCheckpoint(report)
    const saved = await this.#write(async () => {
      checkpoint = this.#makeCheckpoint(report)
      return (await this.#store.checkpoint([checkpoint], inTransaction))[0]!
    })
    this.#at = {
      seq: this.#valueOf(saved),
      page: report.page,
      next: checkpoint.next,
      pageTarget: report.pageTarget ?? this.#at.pageTarget,
      lastItemId: checkpoint.lastItemId ?? this.#at.lastItemId,
      cursor: checkpoint.cursor === undefined ? this.#at.cursor : checkpoint.cursor,
    }
    const { run, target, key } = this.#claimed
    const { page, replaced: count = 0 } = checkpoint
    if (count > 0) this.#emit({ type: 'text_replaced', run, target, key, page, count })
    return this.#at.seq
  }

  #makeCheckpoint(report: RunCheckpoint): ReturnType<typeof makeCheckpoint> {
    // Sent again after its answer got lost, perhaps by the process before this one: then it follows what it followed.
    const seq = report.page === this.#at.page ? this.#at.seq - 1 : this.#at.seq
    return makeCheckpoint(this.#claimed, { ...this.#at, seq }, { ...report, done: false })
  }

  /** How far it is, in its own units. */
  async progress(progress: { done: number; total: number }): Promise<void> {
    checkOptions('progress()', progress, { done: AMOUNT, total: AMOUNT })
    this.#valueOf(await this.#write(() => this.#store.reportProgress(this.claim, progress)))
  }

  /** How far it said it is, perhaps before it was resumed; else 0 of 1. */
  async progressSoFar(): Promise<{ done: number; total: number }> {
    const run = await whenAvailable(() => this.#store.run(this.id), this.#inVain.signal)
    if (!run) throw new LeaseLost(this.claim, 'its run was deleted')
    return doneOf(run)
  }

  async succeed(): Promise<void> {
    this.#isEnding = true
    await this.#end(await this.#write(async () => (await this.#store.finish([this.claim]))[0]!))
  }

  /** It could not go on. With `retry` it is back in line: the next `begin` goes on from the last checkpoint. */
  async fail(error: unknown, options: { retry?: boolean } = {}): Promise<void> {
    checkOptions('fail()', options, { retry: optional(FLAG) })
    const { retry = false } = options
    this.#isEnding = true
    const failure = { error: messageOf(error), retryInMs: retry ? 0 : null }
    const failed = async (): Promise<Outcome<void>> =>
      (await this.#store.fail([{ ...this.claim, ...failure }]))[0]!
    await this.#end(await this.#write(failed))
  }

  /** Hands it back unfinished: the next `begin` goes on from the last checkpoint. */
  async release(): Promise<void> {
    if (this.#isOver) return
    this.#isEnding = true
    this.#inVain.abort(this.#ended)
    const [outcome] = await this.#store.release([this.claim])
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

  /** Used by Unstuck: nothing more can be saved, so waiting for the database is in vain as well. */
  loseStore(error: UnstuckError): void {
    this.#abort.abort(error)
    this.#inVain.abort(error)
  }

  /** Used by Unstuck: it was claimed again, and goes on from where it stands now. */
  takeUp(claimed: Claimed): void {
    this.#claimed = claimed
    this.#at = claimed
  }

  /** Used by Unstuck: a beat found that somebody else has it. While it is being ended, nobody need: the fence decides. */
  lose(): void {
    if (this.#isEnding) return
    this.#drop(new LeaseLost(this.claim, 'it was taken back while this process was silent'))
  }

  async #end(outcome: Outcome<void>): Promise<void> {
    this.#isOver = true
    this.#inVain.abort(this.#ended)
    this.#onEnd()
    this.#valueOf(outcome)
    await whenAvailable(() => this.#store.settle(this.id))
  }

  #patiently<T>(call: () => Promise<T>): Promise<T> {
    if (this.#isOver) throw this.#ended
    // A stop lets the write in hand finish; a lost lease does not.
    return whenAvailable(call, this.#inVain.signal)
  }

  /** A write that is refused because the claim was lost is sent once more if the run could be claimed again. */
  async #write<T>(call: () => Promise<Outcome<T>>): Promise<Outcome<T>> {
    const outcome = await this.#patiently(call)
    const isLost = !outcome.ok && outcome.error instanceof LeaseLost
    return isLost && (await this.#claimAgain()) ? this.#patiently(call) : outcome
  }

  get #ended(): UsageError {
    return new UsageError(`Run ${this.id} has already ended here.`)
  }

  #drop(lost: LeaseLost): void {
    this.#lost ??= lost
    this.#abort.abort(lost)
    this.#inVain.abort(lost)
  }

  #valueOf<T>(outcome: Outcome<T>): T {
    if (outcome.ok) return outcome.value
    if (outcome.error instanceof LeaseLost) this.#drop(outcome.error)
    throw outcome.error
  }
}
