import { HeartbeatClient } from '../heartbeat/client.ts'
import { heartbeatOptions, threadTransport } from '../heartbeat/transport.ts'
import { REAL_CLOCK, TIMER_MAX_MS, type Clock } from '../host/clock.ts'
import type { ClaimedTarget } from '../model/claim.ts'
import {
  isUnusable,
  LeaseLostError,
  SourcePausedError,
  StoppingError,
  toUnstuckError,
  type UnstuckError,
} from '../model/errors.ts'
import type { Emit } from '../model/event.ts'
import { newId, shortId, type ClaimId, type RunId, type WorkerId } from '../model/id.ts'
import { policyForGroup, STOP_DEADLINE_MS } from '../model/policy.ts'
import type { PolicyOverrides } from '../model/policy-of.ts'
import { isLive, countOpenTargets, countTargets, type Paused } from '../model/run.ts'
import { humanizeDuration } from '../model/time.ts'
import { openStore, withRetry } from '../store/open.ts'
import type { Store } from '../store/store.ts'
import { abortable } from './abortable.ts'
import { assertWorkerExists } from './assert-worker.ts'
import type { CrawlDefinition } from './crawl.ts'
import { ensureRun } from './ensure-run.ts'
import { planRun } from './planning.ts'
import { CrawlResources } from './resources.ts'
import { Slots, type Slot } from './slots.ts'
import { crawlTarget } from './target.ts'
import { unstuckCommand } from '../model/shell-command.ts'

export type WorkerOptions = {
  readonly db: string
  readonly overrides: PolicyOverrides
  /** Start a run if the source has none. */
  readonly start: boolean
  /** End when no work is left, instead of waiting for the next run. */
  readonly drain: boolean
  readonly emit: Emit
  readonly log: (message: string) => void
  /** The longest time from `stop` to the end. */
  readonly stopDeadlineMs?: number
  readonly id?: WorkerId
  readonly clock?: Clock
}

export type WorkerResult = {
  /** Null: no work was left. */
  readonly stopReason: string | null
  readonly error: UnstuckError | null
}

const IDLE_MS = 200
/** The part of the stop deadline that is kept for releasing targets and for `teardown()`. */
const CLEANUP_MS = 5_000

/** Claims targets of a crawl and works on them, `concurrency` at a time, until `stop` is called or no work is left. */
export class CrawlWorker {
  readonly id: WorkerId
  readonly #crawl: CrawlDefinition
  readonly #resources: CrawlResources
  readonly #options: WorkerOptions
  readonly #clock: Clock
  readonly #stopping = new AbortController()
  readonly #slots = new Slots()
  /** Set by `run`. */
  store!: Store
  #heartbeat!: HeartbeatClient
  #planning: Promise<void> | null = null
  #error: UnstuckError | null = null
  #abortTimer: NodeJS.Timeout | undefined
  #wake = new AbortController()

  constructor(crawl: CrawlDefinition, options: WorkerOptions) {
    this.id = options.id ?? newId()
    this.#crawl = crawl
    this.#resources = new CrawlResources(crawl)
    this.#options = options
    this.#clock = options.clock ?? REAL_CLOCK
  }

  /** Whether the store accepts the heartbeats. Call it after the event `worker_start`. */
  get isHeartbeating(): boolean {
    return this.#heartbeat.canClaim()
  }

  async run(): Promise<WorkerResult> {
    const { signal } = this.#stopping
    await this.#start()
    try {
      await this.#whilePaused()
      await this.#resources.setup(signal)
      if (this.#options.start && !signal.aborted)
        await ensureRun(this.store, this.#crawl, this.#options.emit, this.id)
      await this.#work()
    } catch (error) {
      // An error after `stop` was called is a consequence of the stop.
      if (!signal.aborted) this.#fail(toUnstuckError(error))
    }
    await this.#finish()
    const { because = null } = signal.aborted ? (signal.reason as StoppingError).data : {}
    return { stopReason: because, error: this.#error }
  }

  /** Stops gracefully: claims nothing more, finishes the pages in progress, then releases the targets. */
  stop(because: string): void {
    if (this.#stopping.signal.aborted) return
    this.#stopping.abort(new StoppingError(because))
    this.#slots.stopAll()
    const { stopDeadlineMs = STOP_DEADLINE_MS } = this.#options
    // The timer also keeps the process running while a page waits for something the event loop does not see.
    this.#abortTimer = setTimeout(
      () => this.#slots.abortAll(new StoppingError(`${because}, and the deadline has come`)),
      Math.max(stopDeadlineMs - CLEANUP_MS, stopDeadlineMs / 2),
    )
    this.#wakeUp()
  }

  async #start(): Promise<void> {
    const { db, overrides, emit, log } = this.#options
    const { source, policy } = this.#crawl
    const transport = threadTransport(db, heartbeatOptions(this.id, source, policy, overrides))
    this.#heartbeat = new HeartbeatClient(transport, policy, {
      emit,
      onLost: (claims) => this.#abortLost(claims),
      onCancelled: (claims) => this.#stopCancelled(claims),
      onPaused: (paused) => this.#onPaused(paused),
      onRecovered: () => this.#wakeUp(),
      onFatal: (error) => this.#fail(error),
    })
    // Both threads open the store at the same time, so that a restarted worker is back soon.
    const opening = openStore(db, { writer: this.id })
    try {
      const [presence, store] = await Promise.all([this.#heartbeat.started(), opening])
      this.store = store
      emit({ type: 'worker_start', source, pid: process.pid, presence: presence.kind })
      for (const warning of store.warnings) log(warning)
    } catch (error) {
      await this.#heartbeat.stop()
      await opening.then((store) => store.close()).catch(() => {})
      throw error
    }
  }

  /** Claims targets as slots become free. While there is nothing to claim, plans the run or ends it. */
  async #work(): Promise<void> {
    const { signal } = this.#stopping
    if (!signal.aborted) {
      await this.#logLiveRun()
      await this.#planOrSettle()
    }
    while (!signal.aborted) {
      const { paused } = this.#heartbeat
      if (paused && this.#options.drain && this.#slots.size === 0) return
      const isBusy = paused !== null || (await this.#claimTargets())
      if (signal.aborted) return
      if (!isBusy && this.#slots.size === 0) {
        const hasRun = await this.#planOrSettle()
        if (!hasRun && this.#options.drain) return assertWorkerExists(this.store, this.id, signal)
      }
      await this.#pause()
    }
  }

  /** Claims a target for each free slot and starts to work on it. Returns false if there was none to claim. */
  async #claimTargets(): Promise<boolean> {
    const { source, concurrency } = this.#crawl
    const free = concurrency - this.#slots.size
    if (free <= 0 || this.#slots.isIsolated || !this.#heartbeat.canClaim()) return true
    const claimIds = Array.from({ length: free }, () => newId())
    const isIdle = this.#slots.size === 0
    const request = { worker: this.id, source, claimIds, isIdle, singleSlot: concurrency === 1 }
    const claim = (): Promise<ClaimedTarget[]> =>
      this.#heartbeat.measure('claim', () => this.store.claim(request))
    let claimed: ClaimedTarget[] = []
    this.#heartbeat.requested(claimIds)
    try {
      claimed = await withRetry(claim, this.#stopping.signal)
    } finally {
      this.#heartbeat.received(claimIds, claimed)
    }
    for (const one of claimed) this.#slots.run(one, (slot) => this.#workOn(slot))
    return claimed.length > 0
  }

  /** Works on a target, page by page, until it is done, failed or released. */
  async #workOn(slot: Slot): Promise<void> {
    const { claimed, stop, abort } = slot
    if (this.#stopping.signal.aborted || this.#heartbeat.paused) stop.abort()
    try {
      await crawlTarget({
        store: this.store,
        heartbeat: this.#heartbeat,
        crawl: this.#crawl,
        clock: this.#clock,
        claimed,
        stop: stop.signal,
        abort: abort.signal,
        resources: this.#resources.value,
        emit: this.#options.emit,
        log: this.#options.log,
        onProgress: () => {
          if (this.#slots.endIsolation(claimed)) this.#wakeUp()
        },
      })
    } catch (error) {
      this.#fail(toUnstuckError(error))
    }
    this.#slots.free(slot)
    this.#heartbeat.released(claimed.claimId)
    this.#wakeUp()
  }

  /** Plans the live run of the source if it is not planned yet, else ends it if no target is open. Returns false if there is none. */
  async #planOrSettle(): Promise<boolean> {
    const { signal } = this.#stopping
    const live = await withRetry(() => this.store.liveRun(this.#crawl.source), signal)
    if (!live) return false
    if (live.plannedAt === null) {
      this.#planning ??= this.#plan(live.id)
      return true
    }
    for (const { run, status } of await withRetry(() => this.store.settle(live.id), signal)) {
      if (!isLive(status)) this.#options.emit({ type: 'run_end', run, status })
      this.#wakeUp()
    }
    return true
  }

  /** Plans while targets are already claimed: work begins before the last target is known. */
  async #plan(run: RunId): Promise<void> {
    const { signal } = this.#stopping
    try {
      if (!(await withRetry(() => this.store.claimPlanning(run, this.id), signal))) return
      const targets = await abortable(signal, () =>
        planRun(this.store, this.#crawl, run, signal, () => this.#wakeUp()),
      )
      this.#options.emit({ type: 'run_planned', run, targets })
    } catch (error) {
      if (!signal.aborted) this.#fail(toUnstuckError(error))
    } finally {
      this.#planning = null
      this.#wakeUp()
    }
  }

  /** Releases all targets after the page in progress; `#work` claims again when the source is no longer paused. */
  #onPaused(paused: Paused | null): void {
    const { source } = this.#crawl
    const state = paused
      ? `paused (${paused.because}) until \`${unstuckCommand('unpause', [source])}\`: finishing its pages in progress`
      : 'no longer paused'
    this.#options.log(`${source} is ${state}`)
    if (paused) this.#slots.stopAll()
    this.#wakeUp()
  }

  /** Before the start of a paused source: waits for the end of the pause. */
  async #whilePaused(): Promise<void> {
    const { source } = this.#crawl
    for (let paused; (paused = this.#heartbeat.paused) && !this.#stopping.signal.aborted;) {
      if (this.#options.drain) throw new SourcePausedError(source, paused)
      await this.#pause()
    }
  }

  /** Releases targets of a cancelled run after the page in progress. A page that hangs is aborted after `maxSilence`. */
  #stopCancelled(claims: readonly ClaimId[]): void {
    const slots = this.#slots.of(claims).filter(({ stop }) => !stop.signal.aborted)
    for (const run of new Set(slots.map(({ claimed }) => claimed.run)))
      this.#options.log(`run ${shortId(run)} has ended: finishing its pages in progress`)
    for (const { stop, abort, claimed } of slots) {
      stop.abort()
      const { maxSilenceMs } = policyForGroup(this.#crawl.policy, claimed.group)
      const late = new StoppingError('its run has ended, and the page did not end in time')
      setTimeout(() => abort.abort(late), Math.min(maxSilenceMs, TIMER_MAX_MS)).unref()
    }
  }

  /** Aborts the pages of revoked claims, with the reason that recovery stored. */
  #abortLost(claims: readonly ClaimId[]): void {
    for (const { claimed, abort } of this.#slots.of(claims)) {
      void this.store
        .target(claimed.target)
        .then((target) => target?.lastError ?? null)
        .catch(() => null)
        .then((why) =>
          abort.abort(new LeaseLostError(claimed, `the claim was revoked${why ? `: ${why}` : ''}`)),
        )
    }
  }

  /** Stops the worker with an error. The first error is the one reported. */
  #fail(error: UnstuckError): void {
    this.#error ??= error
    this.stop(error.message.replace(/\.$/, ''))
    // The pages in progress could not be saved.
    if (isUnusable(error)) this.#slots.abortAll(error)
  }

  async #finish(): Promise<void> {
    await this.#planning
    await this.#slots.idle()
    clearTimeout(this.#abortTimer)
    try {
      await this.#resources.release()
    } catch (error) {
      this.#options.log(`teardown failed: ${toUnstuckError(error).message}`)
    }
    const idle = this.#heartbeat.paused ? 'its source is paused' : 'nothing is left to do'
    await this.#heartbeat.stop()
    await this.store.close()
    const { aborted, reason } = this.#stopping.signal
    const because = aborted ? (reason as StoppingError).data.because : idle
    this.#options.emit({ type: 'worker_stop', reason: because })
  }

  /** Logs which run the worker found, after what recovery did to it. */
  async #logLiveRun(): Promise<void> {
    const { signal } = this.#stopping
    const { source } = this.#crawl
    const live = await withRetry(() => this.store.liveRun(source), signal)
    if (!live) return
    const { id, status, counts, createdAt } = live
    const [open, all] = [countOpenTargets(counts), countTargets(counts)]
    const left = all === 0 ? 'no target is planned yet' : `${open} of ${all} targets are left`
    const age = humanizeDuration((await withRetry(() => this.store.now(), signal)) - createdAt)
    this.#options.log(`run ${shortId(id)} of ${source} is ${status}: ${left}, ${age} old`)
  }

  #wakeUp(): void {
    this.#wake.abort()
  }

  async #pause(): Promise<void> {
    await this.#clock.sleep(IDLE_MS * (0.5 + this.#clock.random()), this.#wake.signal)
    this.#wake = new AbortController()
  }
}
