import { unstuckCommand } from '../../core/model/shell-command.ts'
import type { ClaimedTarget } from '../../core/model/claim.ts'
import type { UnstuckError } from '../../core/model/errors.ts'
import { newId, type ClaimId, type WorkerId } from '../../core/model/id.ts'
import type { Policy } from '../../core/model/policy.ts'
import { NO_OVERRIDES } from '../../core/model/policy-of.ts'
import { describeEvent } from '../../presenters/event.ts'
import { heartbeatOptions, threadTransport } from '../../core/heartbeat/transport.ts'
import { HeartbeatClient } from '../../core/heartbeat/client.ts'
import { withRetry } from '../../core/store/open.ts'
import type { Store } from '../../core/store/store.ts'
import { ClaimedRequest } from './claimed-request.ts'
import { LruMap } from './lru-map.ts'

export type QueueWorkerOptions = {
  readonly store: Store
  readonly db: string
  readonly policy: Policy
  readonly source: string
  /** The next worker id. */
  readonly nextWorkerId: () => WorkerId
  readonly log: (message: string) => void
  readonly onCancelled: () => void
  /** Its heartbeat has started or stopped. */
  readonly onActiveChange: (isAlive: boolean) => void
}

/** The minimum to prefetch: Crawlee claims more when one is left. */
const PREFETCH_MIN = 4
/** So many lost requests are remembered, which Crawlee may still end. */
const LOST_MAX = 10_000

/**
 * This process as a worker of a queue. Its heartbeat starts with the first claim, and stops when it is idle; the next claim
 * starts a new one.
 */
export class QueueWorker {
  readonly #options: QueueWorkerOptions
  readonly #held = new Map<ClaimId, ClaimedRequest>()
  /** Ids of the latest requests whose claims were lost. */
  readonly #lost = new LruMap<true>(LOST_MAX)
  /** Requests added to the front of the queue since the last claim. */
  #forefrontCount = 0
  #worker: WorkerId = ''
  #heartbeat: Promise<HeartbeatClient> | null = null
  #client: HeartbeatClient | null = null
  #claiming: Promise<unknown> = Promise.resolve()
  #fatal: UnstuckError | null = null

  constructor(options: QueueWorkerOptions) {
    this.#options = options
  }

  /** Measures a call to the store, for the metrics of this process. */
  measure<T>(what: 'claim' | 'checkpoint', call: () => Promise<T>): Promise<T> {
    return this.#client ? this.#client.measure(what, call) : call()
  }

  /** Its heartbeat is running. */
  get isActive(): boolean {
    return this.#heartbeat !== null
  }

  /** The claimed requests, in the order of their claims. */
  get claimed(): ClaimedRequest[] {
    return [...this.#held.values()]
  }

  /** Whether the claim of a request with this id was lost. */
  wasLost(id: string): boolean {
    return this.#lost.get(id) === true
  }

  /**
   * Claims requests. It prefetches no more than are being handled, so that a crash counts for few, and other processes get
   * their share; but all that were added to the front, since Crawlee handles the prefetched ones first. A request that was in
   * progress during a crash is claimed alone.
   */
  claim(limit: number): Promise<{ claimed: ClaimedRequest[]; requested: number }> {
    // One after the other, so that `isIdle` is right.
    const next = this.#claiming.then(() => this.#claim(limit))
    this.#claiming = next.catch(() => {})
    return next
  }

  /** So many were added before the prefetched ones. */
  expectForefront(count: number): void {
    this.#forefrontCount += count
  }

  /** A claim has ended or was lost. */
  endClaim(request: ClaimedRequest, state: 'saved' | 'taken' | 'over'): void {
    request.state = state
    if (state !== 'saved' && request.isStarted) this.#lost.set(request.request.id, true)
    this.#held.delete(request.claim.claimId)
    void this.#heartbeat
      ?.then((heartbeat) => heartbeat.released(request.claim.claimId))
      .catch(() => {})
  }

  /** Releases requests that were not started; stops the heartbeat if none is left. */
  async stopIfIdle(): Promise<void> {
    await this.#claiming
    await this.release(this.claimed.filter(({ isStarted }) => !isStarted))
    if (this.#held.size > 0 || !this.#heartbeat) return
    const heartbeat = this.#heartbeat
    this.#heartbeat = null
    this.#options.onActiveChange(false)
    await (await heartbeat).stop()
  }

  /** Puts requests back unchanged: any process can claim them at once. `forefront`: before all others. */
  async release(requests: readonly ClaimedRequest[], forefront = false): Promise<void> {
    if (requests.length === 0) return
    for (const request of requests) request.isEnding = true
    try {
      await this.#options.store.release(requests.map(({ claim }) => ({ ...claim, forefront })))
      for (const request of requests) this.endClaim(request, 'taken')
    } finally {
      for (const request of requests) request.isEnding = false
    }
  }

  async #claim(limit: number): Promise<{ claimed: ClaimedRequest[]; requested: number }> {
    const started = this.claimed.filter(({ isStarted }) => isStarted).length
    const requested = Math.min(limit, Math.max(PREFETCH_MIN, started, this.#forefrontCount))
    const holdsCrashed = this.claimed.some(({ claim }) => claim.crashedBefore)
    const heartbeat = await (this.#heartbeat ??= this.#startHeartbeat())
    if (this.#fatal) throw this.#fatal
    if (holdsCrashed || requested <= 0 || !heartbeat.canClaim()) return { claimed: [], requested }
    const { store, source } = this.#options
    const claimIds = Array.from({ length: requested }, () => newId())
    heartbeat.requested(claimIds)
    this.#forefrontCount = 0
    let claimed: ClaimedTarget[] = []
    try {
      const [worker, isIdle] = [this.#worker, this.#held.size === 0]
      const request = { worker, source, claimIds, isIdle, singleSlot: false }
      claimed = await withRetry(() => heartbeat.measure('claim', () => store.claim(request)))
    } finally {
      heartbeat.received(claimIds, claimed)
    }
    const requests = claimed.map((one) => new ClaimedRequest(store, one))
    for (const request of requests) this.#held.set(request.claim.claimId, request)
    return { claimed: requests, requested }
  }

  async #startHeartbeat(): Promise<HeartbeatClient> {
    const { db, policy, source, log, nextWorkerId, onCancelled, onActiveChange } = this.#options
    this.#worker = nextWorkerId()
    const options = heartbeatOptions(this.#worker, source, policy, NO_OVERRIDES)
    const heartbeat = new HeartbeatClient(threadTransport(db, options), policy, {
      emit: (event) => {
        const line = describeEvent(event)
        if (line !== null) log(line)
      },
      onLost: (claims) => this.#markLost(claims),
      onCancelled,
      onPaused: (paused) =>
        log(
          paused
            ? `${source} is paused (${paused.because}): no request is claimed until \`${unstuckCommand('unpause', [source])}\``
            : `${source} is no longer paused`,
        ),
      onFatal: (error) => (this.#fatal = error),
    })
    try {
      await heartbeat.started()
    } catch (error) {
      this.#heartbeat = null
      throw error
    }
    this.#client = heartbeat
    onActiveChange(true)
    return heartbeat
  }

  /** A heartbeat found that these claims are lost. */
  #markLost(claims: readonly ClaimId[]): void {
    for (const request of claims.flatMap((id) => this.#held.get(id) ?? [])) {
      if (request.isEnding) continue
      this.#options.log(
        `The claim on ${request.request.url} is lost: the data it pushed is dropped`,
      )
      this.endClaim(request, 'taken')
    }
  }
}
