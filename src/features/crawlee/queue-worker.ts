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
  /** It begins to live, or has ended. */
  readonly onActiveChange: (isAlive: boolean) => void
}

/** So many at least are fetched ahead: Crawlee asks for more when one is left. */
const PREFETCH_MIN = 4
/** Asked about for as long as Crawlee may still have them in mind. */
const LOST_MAX = 10_000

/**
 * This process as one that claims requests of a queue. Its signs of life begin with the first claim, and end when it
 * is sent to rest with nothing in hand; the next claim begins a new life.
 */
export class QueueWorker {
  readonly #options: QueueWorkerOptions
  readonly #held = new Map<ClaimId, ClaimedRequest>()
  /** Requests, by id, that were taken from this process while it had them: the last ones. */
  readonly #lost = new LruMap<true>(LOST_MAX)
  /** Requests that were put in front of all others since the last claim. */
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

  /** It shows signs of life. */
  get isActive(): boolean {
    return this.#heartbeat !== null
  }

  /** What this process has, by the order in which it came. */
  get claimed(): ClaimedRequest[] {
    return [...this.#held.values()]
  }

  /** A request with this id was claimed here, and was taken from this worker. */
  wasLost(id: string): boolean {
    return this.#lost.get(id) === true
  }

  /**
   * Claims requests: no more ahead than are being worked on, so that a process that dies leaves few under suspicion, and
   * does not sit on what others could do; but all that was put in front, since Crawlee would handle those that it has before
   * it asks for the rest. One that took a process down is taken alone.
   */
  claim(limit: number): Promise<{ claimed: ClaimedRequest[]; asked: number }> {
    // One after the other: whether the process is empty must be true.
    const next = this.#claiming.then(() => this.#claim(limit))
    this.#claiming = next.catch(() => {})
    return next
  }

  /** So many come before what was fetched ahead. */
  expectForefront(count: number): void {
    this.#forefrontCount += count
  }

  /** The claim is over, one way or another. */
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

  /** Untouched, claimable at once by anybody. */
  async release(requests: readonly ClaimedRequest[]): Promise<void> {
    if (requests.length === 0) return
    for (const request of requests) request.isEnding = true
    try {
      await this.#options.store.release(requests.map(({ claim }) => claim))
      for (const request of requests) this.endClaim(request, 'taken')
    } finally {
      for (const request of requests) request.isEnding = false
    }
  }

  async #claim(limit: number): Promise<{ claimed: ClaimedRequest[]; asked: number }> {
    const started = this.claimed.filter(({ isStarted }) => isStarted).length
    const asked = Math.min(limit, Math.max(PREFETCH_MIN, started, this.#forefrontCount))
    const holdsCrashed = this.claimed.some(({ claim }) => claim.crashedBefore)
    const heartbeat = await (this.#heartbeat ??= this.#startHeartbeat())
    if (this.#fatal) throw this.#fatal
    if (holdsCrashed || asked <= 0 || !heartbeat.canClaim()) return { claimed: [], asked }
    const { store, source } = this.#options
    const claimIds = Array.from({ length: asked }, () => newId())
    heartbeat.requested(claimIds)
    this.#forefrontCount = 0
    let claimed: ClaimedTarget[] = []
    try {
      const [worker, isIdle] = [this.#worker, this.#held.size === 0]
      const request = { worker, source, claimIds, isIdle, singleSlot: false }
      claimed = await withRetry(() => heartbeat.measure('claim', () => store.claim(request)))
    } finally {
      const claimedIds = claimed.map(({ claimId }) => claimId)
      heartbeat.received(claimIds, claimedIds)
    }
    const requests = claimed.map((one) => new ClaimedRequest(store, one))
    for (const request of requests) this.#held.set(request.claim.claimId, request)
    return { claimed: requests, asked }
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
      this.#options.log(`${request.request.url} was taken back: what it pushed is dropped`)
      this.endClaim(request, 'taken')
    }
  }
}
