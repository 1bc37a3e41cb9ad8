import {
  isUnusable,
  LeaseLostError,
  messageOf,
  StoppingError,
  toUnstuckError,
  type UnstuckError,
} from '../model/errors.ts'
import type { ClaimedTarget } from '../model/claim.ts'
import type { Emit } from '../model/event.ts'
import { newId, shortId, type ClaimId, type RunId, type WorkerId } from '../model/id.ts'
import { policyForGroup, STOP_DEADLINE_MS } from '../model/policy.ts'
import { isLive, countOpenTargets, countTargets } from '../model/run.ts'
import { humanizeDuration } from '../model/time.ts'
import { openStore, withRetry } from '../store/open.ts'
import type { Store } from '../store/store.ts'
import { abortable } from './abortable.ts'
import { REAL_CLOCK, TIMER_MAX_MS, type Clock } from '../host/clock.ts'
import type { Crawl } from './crawl.ts'
import { assertWorkerExists } from './assert-worker.ts'
import { planRun } from './planning.ts'
import { ensureRun } from './ensure-run.ts'
import { HeartbeatClient } from '../heartbeat/client.ts'
import { heartbeatOptions, threadTransport } from '../heartbeat/transport.ts'
import { crawlTarget } from './target.ts'

export type WorkerOptions = {
  readonly db: string
  /** Begin a run when there is none. */
  readonly start: boolean
  /** End when nothing is left, instead of waiting for the next run. */
  readonly drain: boolean
  readonly emit: Emit
  readonly log: (message: string) => void
  /** From `stop` to the end, at most. */
  readonly stopDeadlineMs?: number
  readonly id?: WorkerId
  readonly clock?: Clock
}

/** How a worker's life ended. */
export type WorkerResult = {
  /** Null: nothing was left to do. */
  readonly stopReason: string | null
  readonly error: UnstuckError | null
}

type Slot = {
  readonly claimed: ClaimedTarget
  readonly abort: AbortController
  readonly stop: AbortController
}

const IDLE_MS = 200
/** Of the stop deadline, what is kept for handing back and tearing down after pages were cut short. */
const CLEANUP_MS = 5_000

/** A process's share of a crawl: claims targets into its slots and keeps them going until it is told to stop. */
export class CrawlWorker {
  readonly id: WorkerId
  readonly #crawl: Crawl
  readonly #options: WorkerOptions
  readonly #clock: Clock
  readonly #stopping = new AbortController()
  readonly #slots = new Map<ClaimId, Slot>()
  readonly #running = new Set<Promise<void>>()
  /** Once it has started. */
  store!: Store
  #heartbeat!: HeartbeatClient
  #planning: Promise<void> | null = null
  #error: UnstuckError | null = null
  #abortTimer: NodeJS.Timeout | undefined
  #wake = new AbortController()
  /** A target that took a worker down: while it has saved no page, nothing else is taken beside it. */
  #isolatedClaim: ClaimId | null = null

  constructor(crawl: Crawl, options: WorkerOptions) {
    this.id = options.id ?? newId()
    this.#crawl = crawl
    this.#options = options
    this.#clock = options.clock ?? REAL_CLOCK
  }

  /** Its signs of life are accepted, once it has started. */
  get isHeartbeating(): boolean {
    return this.#heartbeat.canClaim()
  }

  /** Works until there is nothing left, or until `stop`. */
  async run(): Promise<WorkerResult> {
    await this.#start()
    try {
      await this.#crawl.setup()
      if (this.#options.start && !this.#stopping.signal.aborted)
        await ensureRun(this.store, this.#crawl, this.#options.emit, this.id)
      await this.#work()
    } catch (error) {
      // Cut short by the stop that was asked for: not a failure.
      if (!this.#stopping.signal.aborted) this.#fail(toUnstuckError(error))
    }
    await this.#finish()
    const stopReason = this.#stopping.signal.aborted ? reasonOf(this.#stopping.signal) : null
    return { stopReason, error: this.#error }
  }

  /** Asks for a graceful stop: no new claims, the pages in hand are finished, the rest is handed back. */
  stop(because: string): void {
    if (this.#stopping.signal.aborted) return
    this.#stopping.abort(new StoppingError(because))
    for (const slot of this.#slots.values()) slot.stop.abort()
    const { stopDeadlineMs = STOP_DEADLINE_MS } = this.#options
    // It also keeps the process here for a page that waits for nothing the event loop knows of.
    this.#abortTimer = setTimeout(
      () => this.#abortAll(new StoppingError(`${because}, and the deadline has come`)),
      Math.max(stopDeadlineMs - CLEANUP_MS, stopDeadlineMs / 2),
    )
    this.#wakeUp()
  }

  async #start(): Promise<void> {
    const { db, emit } = this.#options
    const { source, policy } = this.#crawl
    const options = heartbeatOptions(this.id, source, policy)
    this.#heartbeat = new HeartbeatClient(threadTransport(db, options), policy, {
      emit,
      onLost: (claims) => this.#abortLost(claims),
      onCancelled: (claims) => this.#stopCancelled(claims),
      onRecovered: () => this.#wakeUp(),
      onFatal: (error) => this.#fail(error),
    })
    // The thread and this one open the store side by side: a worker that died should be back at once.
    const opening = openStore(db, { writer: this.id })
    try {
      const [presence] = await Promise.all([this.#heartbeat.started(), opening])
      this.store = await opening
      emit({ type: 'worker_start', source, pid: process.pid, presence: presence.kind })
      for (const warning of this.store.warnings) this.#options.log(warning)
    } catch (error) {
      await this.#heartbeat.stop()
      await opening.then((store) => store.close()).catch(() => {})
      throw error
    }
  }

  async #work(): Promise<void> {
    const { signal } = this.#stopping
    if (!signal.aborted) {
      await this.#logLiveRun()
      await this.#isDrained()
    }
    while (!signal.aborted) {
      const found = await this.#fillSlots()
      if (signal.aborted) return
      if (!found && this.#slots.size === 0 && (await this.#isDrained())) return
      await this.#pause()
    }
  }

  /** The log begins with what the worker found: recovery's verdicts are said already. */
  async #logLiveRun(): Promise<void> {
    const { source } = this.#crawl
    const live = await withRetry(() => this.store.liveRun(source), this.#stopping.signal)
    if (!live) return
    const { id, status, counts, createdAt } = live
    const left = `${countOpenTargets(counts)} of ${countTargets(counts)} targets are left`
    const now = await withRetry(() => this.store.now(), this.#stopping.signal)
    this.#options.log(
      `run ${shortId(id)} of ${source} is ${status}: ${left}, ${humanizeDuration(now - createdAt)} old`,
    )
  }

  /** Claims as many targets as slots are free. True when it got any. */
  async #fillSlots(): Promise<boolean> {
    const free = this.#crawl.concurrency - this.#slots.size
    if (free <= 0 || this.#isolatedClaim !== null || !this.#heartbeat.canClaim()) return true
    const claimIds = Array.from({ length: free }, () => newId())
    this.#heartbeat.requested(claimIds)
    const request = {
      worker: this.id,
      source: this.#crawl.source,
      claimIds,
      isIdle: this.#slots.size === 0,
      singleSlot: this.#crawl.concurrency === 1,
    }
    const claim = (): Promise<ClaimedTarget[]> =>
      this.#heartbeat.measure('claim', () => this.store.claim(request))
    let claimed: ClaimedTarget[] = []
    try {
      claimed = await withRetry(claim, this.#stopping.signal)
    } finally {
      const received = claimed.map(({ claimId }) => claimId)
      this.#heartbeat.received(claimIds, received)
    }
    for (const claim of claimed) this.#startTarget(claim)
    return claimed.length > 0
  }

  #startTarget(claimed: ClaimedTarget): void {
    const slot: Slot = { claimed, abort: new AbortController(), stop: new AbortController() }
    if (this.#stopping.signal.aborted) slot.stop.abort()
    this.#slots.set(claimed.claimId, slot)
    if (claimed.crashedBefore) this.#isolatedClaim = claimed.claimId
    const crawling = crawlTarget({
      store: this.store,
      heartbeat: this.#heartbeat,
      crawl: this.#crawl,
      clock: this.#clock,
      claimed,
      stop: slot.stop.signal,
      abort: slot.abort.signal,
      emit: this.#options.emit,
      log: this.#options.log,
      onProgress: () => this.#endIsolation(claimed.claimId),
    })
    const ended = crawling
      .catch((error: unknown) => this.#fail(toUnstuckError(error)))
      .finally(() => {
        this.#slots.delete(claimed.claimId)
        this.#running.delete(ended)
        this.#heartbeat.released(claimed.claimId)
        this.#endIsolation(claimed.claimId)
        this.#wakeUp()
      })
    this.#running.add(ended)
  }

  #endIsolation(claim: ClaimId): void {
    if (this.#isolatedClaim !== claim) return
    this.#isolatedClaim = null
    this.#wakeUp()
  }

  /** Nothing could be claimed and nothing is in hand: plan, end the run, or see whether there is one at all. */
  async #isDrained(): Promise<boolean> {
    const live = await withRetry(
      () => this.store.liveRun(this.#crawl.source),
      this.#stopping.signal,
    )
    if (!live) {
      if (this.#options.drain) await assertWorkerExists(this.store, this.id, this.#stopping.signal)
      return this.#options.drain
    }
    if (live.plannedAt === null) {
      this.#plan(live.id)
      return false
    }
    const settled = await withRetry(() => this.store.settle(live.id), this.#stopping.signal)
    for (const { run, status } of settled) {
      if (!isLive(status)) this.#options.emit({ type: 'run_end', run, status })
      this.#wakeUp()
    }
    return false
  }

  /** Runs beside the work: targets are claimed while others still stream in. */
  #plan(run: RunId): void {
    const { signal } = this.#stopping
    this.#planning ??= (async () => {
      if (!(await withRetry(() => this.store.claimPlanning(run, this.id), signal))) return
      const targets = await abortable(signal, () =>
        planRun(this.store, this.#crawl, run, signal, () => this.#wakeUp()),
      )
      this.#options.emit({ type: 'run_planned', run, targets })
    })()
      .catch((error: unknown) => {
        if (!signal.aborted) this.#fail(toUnstuckError(error))
      })
      .finally(() => {
        this.#planning = null
        this.#wakeUp()
      })
  }

  /** Their run has ended: they stop at the end of the page in hand. */
  #stopCancelled(claims: readonly ClaimId[]): void {
    const slots = claims
      .flatMap((id) => this.#slots.get(id) ?? [])
      .filter(({ stop }) => !stop.signal.aborted)
    for (const run of new Set(slots.map(({ claimed }) => claimed.run))) {
      this.#options.log(`run ${shortId(run)} was ended: finishing the pages in hand`)
    }
    for (const { stop, abort, claimed } of slots) {
      stop.abort()
      // A page that hangs must not keep its slot for ever.
      const { maxSilenceMs } = policyForGroup(this.#crawl.policy, claimed.group)
      const late = new StoppingError('its run was ended, and the page did not end in time')
      setTimeout(() => abort.abort(late), Math.min(maxSilenceMs, TIMER_MAX_MS)).unref()
    }
  }

  /** Claims that a beat found to be somebody else's: what is in hand is dropped. */
  #abortLost(claims: readonly ClaimId[]): void {
    for (const slot of claims.flatMap((id) => this.#slots.get(id) ?? [])) {
      const { claimed, abort } = slot
      // Who took it wrote down why.
      void this.store
        .target(claimed.target)
        .then((target) => target?.lastError ?? null)
        .catch(() => null)
        .then((why) =>
          abort.abort(new LeaseLostError(claimed, `it was taken back${why ? `: ${why}` : ''}`)),
        )
    }
  }

  #fail(error: UnstuckError): void {
    this.#error ??= error
    this.stop(error.message.replace(/\.$/, ''))
    // What the pages in hand return could not be saved.
    if (isUnusable(error)) this.#abortAll(error)
  }

  #abortAll(reason: UnstuckError): void {
    for (const slot of this.#slots.values()) slot.abort.abort(reason)
  }

  async #finish(): Promise<void> {
    await this.#planning
    await Promise.all(this.#running)
    clearTimeout(this.#abortTimer)
    try {
      await this.#crawl.teardown()
    } catch (error) {
      this.#options.log(`teardown failed: ${toUnstuckError(error).message}`)
    }
    await this.#heartbeat.stop()
    await this.store.close()
    const { signal } = this.#stopping
    const reason = signal.aborted ? reasonOf(signal) : 'nothing is left to do'
    this.#options.emit({ type: 'worker_stop', reason })
  }

  #wakeUp(): void {
    this.#wake.abort()
  }

  async #pause(): Promise<void> {
    await this.#clock.sleep(IDLE_MS * (0.5 + this.#clock.random()), this.#wake.signal)
    this.#wake = new AbortController()
  }
}

function reasonOf(signal: AbortSignal): string {
  return messageOf(signal.reason)
}
