import type { HeartbeatClient } from '../../../core/heartbeat/client.ts'
import { REAL_CLOCK } from '../../../core/host/clock.ts'
import type { Checkpoint } from '../../../core/model/checkpoint.ts'
import type { ClaimedTarget, Outcome } from '../../../core/model/claim.ts'
import { LeaseLostError, StoppingError, toError } from '../../../core/model/errors.ts'
import type { Emit } from '../../../core/model/event.ts'
import { newId, type TargetId, type WorkerId } from '../../../core/model/id.ts'
import type { Policy } from '../../../core/model/policy.ts'
import { isLive, type Run } from '../../../core/model/run.ts'
import { cutText } from '../../../core/model/text.ts'
import { withRetry } from '../../../core/store/open.ts'
import type { Store } from '../../../core/store/store.ts'
import type { PageReport } from '../../../core/worker/page.ts'
import { ConcurrencyLimit } from '../../../lib/http/limits.ts'
import { stopping } from '../run-api/errors.ts'
import { failureOf, type ClaimEnd, type ClaimEndReply } from './claim-end.ts'
import { HeldTarget } from './held-target.ts'
import { HeldTargets } from './held-targets.ts'
import { Planning } from './planning.ts'
import { CommandTransactions } from './transactions.ts'

export type WorkerSessionOptions = {
  readonly store: Store
  readonly worker: WorkerId
  readonly heartbeat: Pick<
    HeartbeatClient,
    'canClaim' | 'measure' | 'paused' | 'received' | 'released' | 'requested'
  >
  /** The run that the command works on. */
  readonly run: Pick<Run, 'id' | 'source'>
  readonly policy: Policy
  readonly emit: Emit
  /** Fires when the command is to finish its pages and end. */
  readonly stopping: AbortSignal
}

type ClaimCall = { readonly max: number; readonly waitMs: number; readonly single: boolean }

export type ClaimReply = {
  readonly targets: readonly HeldTarget[]
  /** The run has ended: the command can end. */
  readonly ended: boolean
  /** The command is to finish its pages and end. */
  readonly stop: boolean
}

/** A page of a target, as the command reports it. */
export type TargetPage = { readonly target: TargetId; readonly report: PageReport }

export type PageOutcome = Outcome<{ readonly seq: number; readonly done: boolean }>

/** A line for the journal, as the command reports it. */
export type LogLine = {
  readonly message: string
  readonly level: 'info' | 'warn' | 'error'
  readonly target?: TargetId | null | undefined
  readonly fields?: Readonly<Record<string, unknown>> | undefined
}

const NOTHING: ClaimReply = { targets: [], ended: false, stop: false }
const IDLE_MS = 200
const RELEASE_TIMEOUT_MS = 10_000
/** Of a line for the journal: its message, and its fields. */
export const LINE_BYTES_MAX = 16 * 1_024

/** The work of one command: what it claims, and every write in its name. */
export class WorkerSession {
  readonly planning: Planning
  readonly held: HeldTargets
  readonly transactions: CommandTransactions
  readonly #options: WorkerSessionOptions
  readonly #closed = new AbortController()
  /** Attempts to claim: one at a time. */
  readonly #claims = new ConcurrencyLimit(1, Infinity, stopping)
  #wake = new AbortController()
  /** Nothing was found: calls that wait try again at this time, or when they are woken up. */
  #idleUntil = -Infinity
  #hasProgressed = false

  constructor(options: WorkerSessionOptions) {
    const { heartbeat, emit } = options
    this.#options = options
    this.held = new HeldTargets({ heartbeat, emit, onIsolationEnd: () => this.wakeUp() })
    this.planning = new Planning({
      ...options,
      retry: (call) => this.#retry(call),
      onPlanned: () => this.wakeUp(),
    })
    this.transactions = new CommandTransactions({
      store: options.store,
      held: this.held,
      retry: (call) => this.#retry(call),
      onSaved: (held, page, seq) => this.#onSaved(held, page, seq),
    })
  }

  get isStopping(): boolean {
    return this.#options.stopping.aborted || this.#options.heartbeat.paused !== null
  }

  /** It saved a page or ended a target. */
  get hasProgressed(): boolean {
    return this.#hasProgressed
  }

  /** The command has ended: calls that wait for the database are given up. */
  close(): void {
    this.#closed.abort(new StoppingError('the command has ended'))
  }

  /** Resolves when no claim is in flight any more. Call it after `close`. */
  readonly idle = (): Promise<void> => this.#claims.run('', [], async () => {})

  /** Targets may have become claimable: a claim that waits tries again. */
  wakeUp(): void {
    this.#idleUntil = -Infinity
    this.#wake.abort()
    this.#wake = new AbortController()
  }

  // — Claims —

  /** Claims up to `max` targets. Waits for one until the time is over, or `caller` hangs up. */
  async claim(request: ClaimCall, caller: AbortSignal): Promise<ClaimReply> {
    const deadline = REAL_CLOCK.now() + request.waitMs
    for (let isFirst = true; ; isFirst = false) {
      const reply = await this.#claimInTurn(request, caller, isFirst)
      if (reply) return reply
      const leftMs = deadline - REAL_CLOCK.now()
      if (leftMs <= 0 || caller.aborted) return NOTHING
      const idleMs = Math.max(this.#idleUntil - REAL_CLOCK.now(), 0)
      const wake = AbortSignal.any([this.#wake.signal, caller, this.#options.stopping])
      await REAL_CLOCK.sleep(Math.min(leftMs, idleMs), wake)
    }
  }

  /**
   * Tries to claim when earlier calls have tried: two at the same time could get a target that must be alone, and one beside
   * it. Returns null if there is nothing to claim now; a call that waits finds that out for all that wait.
   */
  #claimInTurn(
    request: ClaimCall,
    caller: AbortSignal,
    isFirst: boolean,
  ): Promise<ClaimReply | null> {
    return this.#claims.run('', [], async () => {
      if (this.isStopping) return { ...NOTHING, stop: true }
      if (this.#closed.signal.aborted || caller.aborted) return NOTHING
      if (!isFirst && REAL_CLOCK.now() < this.#idleUntil) return null
      const wake = this.#wake
      const targets = await this.#tryClaim(request)
      if (targets.length > 0 && caller.aborted) {
        // Nothing would work on them.
        await this.release(targets)
        return null
      }
      if (targets.length > 0) return { ...NOTHING, targets }
      if (wake === this.#wake)
        this.#idleUntil = REAL_CLOCK.now() + IDLE_MS * (0.5 + REAL_CLOCK.random())
      return (await this.#hasRunEnded()) ? { ...NOTHING, ended: true } : null
    })
  }

  async #tryClaim({ max, single }: ClaimCall): Promise<HeldTarget[]> {
    const { heartbeat, worker, run } = this.#options
    if (this.held.isIsolated || !heartbeat.canClaim()) return []
    const claimIds = Array.from({ length: max }, () => newId())
    const singleSlot = single && max === 1
    const isIdle = this.held.size === 0
    const request = { worker, source: run.source, claimIds, isIdle, singleSlot }
    heartbeat.requested(claimIds)
    const claimed = await this.#claimOrStop(request)
    heartbeat.received(claimIds, claimed)
    const targets = claimed.map((one) => this.held.add(one))
    // A newer run of the source is for commands that were started for it.
    const isOwn = (held: HeldTarget): boolean =>
      held.claimed.run === run.id && !this.#closed.signal.aborted
    const useless = targets.filter((held) => !isOwn(held))
    await this.release(useless, AbortSignal.timeout(RELEASE_TIMEOUT_MS))
    return targets.filter(isOwn)
  }

  /** Returns nothing if the command is to stop, or has ended, while the database cannot be reached. */
  async #claimOrStop(request: Parameters<Store['claim']>[0]): Promise<ClaimedTarget[]> {
    const { store, heartbeat, stopping } = this.#options
    const over = AbortSignal.any([stopping, this.#closed.signal])
    try {
      const claim = (): Promise<ClaimedTarget[]> =>
        heartbeat.measure('claim', () => store.claim(request))
      return await withRetry(claim, over)
    } catch (error) {
      heartbeat.received(request.claimIds, [])
      if (over.aborted) return []
      throw error
    }
  }

  /** Ends a planned run without open targets. Returns true once the run of this command has ended. */
  async #hasRunEnded(): Promise<boolean> {
    const { store, run, emit } = this.#options
    const live = await this.#retry(() => store.liveRun(run.source))
    if (live?.id !== run.id) return true
    if (live.plannedAt === null) return false
    const settled = await this.#retry(() => store.settle(run.id))
    const ended = settled.find(({ status }) => !isLive(status))
    if (ended) emit({ type: 'run_end', run: ended.run, status: ended.status })
    return ended !== undefined
  }

  // — Pages —

  /** Saves pages of different targets. Each has its own outcome. */
  async checkpoint(pages: readonly TargetPage[]): Promise<PageOutcome[]> {
    const found = pages.map(({ target }) => outcomeOf(() => this.held.find(target)))
    const known = found.flatMap((one) => (one.ok ? [one.value] : []))
    return HeldTarget.inTurn(known, () => this.#save(pages, found))
  }

  async #save(
    pages: readonly TargetPage[],
    found: readonly Outcome<HeldTarget>[],
  ): Promise<PageOutcome[]> {
    const { store, heartbeat } = this.#options
    const made = found.map((held, n) =>
      held.ok ? outcomeOf(() => pageOf(held.value, pages[n]!.report)) : held,
    )
    const ready = made.flatMap((one) => (one.ok ? [one.value] : []))
    const checkpoints = ready.map(({ checkpoint }) => checkpoint)
    const save = (): Promise<Outcome<{ seq: number }>[]> =>
      heartbeat.measure('checkpoint', () => store.checkpoint(checkpoints))
    const saved = ready.length === 0 ? [] : await this.#retry(save)
    return made.map((one): PageOutcome => {
      if (!one.ok) return one
      const { held, checkpoint } = one.value
      const outcome = saved[ready.indexOf(one.value)]!
      if (outcome.ok) return { ok: true, value: this.#onSaved(held, checkpoint, outcome.value.seq) }
      if (outcome.error instanceof LeaseLostError) this.held.drop(held, outcome.error)
      return outcome
    })
  }

  /** Records that a page is saved: the cursor moves, and the claim has ended after the last page. */
  #onSaved(held: HeldTarget, checkpoint: Checkpoint, seq: number): { seq: number; done: boolean } {
    const { run, target, key } = held.claimed
    const { page, items, replaced: count = 0, done } = checkpoint
    const { emit } = this.#options
    // A page that is sent twice is there already.
    if (page > held.page) {
      held.advance(checkpoint, seq)
      emit({ type: 'page_complete', run, target, key, page, items: items.length })
      if (count > 0) emit({ type: 'text_replaced', run, target, key, page, count })
    }
    this.#hasProgressed = true
    this.held.endIsolation(held)
    if (done && this.held.isHeld(held)) {
      emit({ type: 'target_complete', run, target, key, page })
      this.held.end(held, 'finish', { status: 'done', retryInMs: null })
    }
    return { seq, done }
  }

  // — Ends of claims —

  /** Ends the claim of a target. Repeated, it returns the same reply. */
  async end(target: TargetId, end: ClaimEnd): Promise<ClaimEndReply> {
    const held = this.held.find(target)
    return HeldTarget.inTurn([held], async () => {
      const before = this.held.endOf(held, end.by)
      if (before) return before
      held.assertNoTransaction()
      if (end.by !== 'release') return this.#end(held, end)
      await this.release([held])
      return { status: 'planned', retryInMs: null }
    })
  }

  async #end(held: HeldTarget, end: Exclude<ClaimEnd, { by: 'release' }>): Promise<ClaimEndReply> {
    const { store, emit, policy } = this.#options
    const { claim, page } = held
    const { run, target, key } = held.claimed
    if (end.by === 'finish') {
      await this.#write(held, () => store.finish([claim]))
      emit({ type: 'target_complete', run, target, key, page })
      return this.held.end(held, 'finish', { status: 'done', retryInMs: null })
    }
    const failure = failureOf(held, end, policy, REAL_CLOCK)
    const { becomes, error } = failure
    await this.#write(held, () => store.fail([failure]))
    const retryInMs = typeof becomes === 'object' ? becomes.retryInMs : null
    emit({ type: 'target_error', run, target, key, page: page + 1, error, retryInMs })
    const status = typeof becomes === 'object' ? 'planned' : becomes
    return this.held.end(held, end.by, { status, retryInMs })
  }

  /** Releases targets without counting anything. One whose claim was lost is dropped. */
  async release(
    targets: readonly HeldTarget[],
    signal: AbortSignal = this.#closed.signal,
  ): Promise<void> {
    if (targets.length === 0) return
    const { store, emit } = this.#options
    const claims = targets.map(({ claim }) => claim)
    const outcomes = await withRetry(() => store.release(claims), signal)
    for (const [n, held] of targets.entries()) {
      const { run, target, key } = held.claimed
      const outcome = outcomes[n]!
      if (outcome.ok) emit({ type: 'target_released', run, target, key, page: held.page })
      else this.held.drop(held, outcome.error)
      this.held.end(held, 'release', { status: 'planned', retryInMs: null })
    }
  }

  /** Writes a line into the journal. */
  log({ message, level, target = null, fields }: LogLine): void {
    const { emit, run } = this.#options
    const text = cutText(message, LINE_BYTES_MAX)
    emit({ type: 'log', run: run.id, target, level, message: text, fields })
  }

  /** Throws the error of a write that was refused. */
  async #write(held: HeldTarget, call: () => Promise<Outcome<void>[]>): Promise<void> {
    const [outcome] = await this.#retry(call)
    this.#hasProgressed = true
    if (outcome!.ok) return
    if (outcome!.error instanceof LeaseLostError) this.held.drop(held, outcome!.error)
    throw outcome!.error
  }

  #retry<T>(call: () => Promise<T>): Promise<T> {
    return withRetry(call, this.#closed.signal)
  }
}

function pageOf(
  held: HeldTarget,
  report: PageReport,
): { readonly held: HeldTarget; readonly checkpoint: Checkpoint } {
  held.assertNoTransaction()
  return { held, checkpoint: held.checkpointOf(report) }
}

function outcomeOf<T>(make: () => T): Outcome<T> {
  try {
    return { ok: true, value: make() }
  } catch (error) {
    return { ok: false, error: toError(error) }
  }
}
