import type { Claimed } from '../../core/model/claim.ts'
import type { UnstuckError } from '../../core/model/errors.ts'
import { newId, type ClaimId, type WorkerId } from '../../core/model/id.ts'
import type { Policy } from '../../core/model/policy.ts'
import { sentence } from '../../presenters/event.ts'
import { threadSeat } from '../../core/heartbeat/transport.ts'
import { caretaking } from '../../core/recovery/monitor.ts'
import { SignsOfLife } from '../../core/heartbeat/client.ts'
import { whenAvailable } from '../../core/store/open.ts'
import type { Store } from '../../core/store/store.ts'
import { VERSION } from '../../core/host/version.ts'
import { InHand } from './claimed-request.ts'
import { Recent } from './lru-map.ts'

export type QueueWorkerOptions = {
  readonly store: Store
  readonly db: string
  readonly policy: Policy
  readonly source: string
  /** As whom it lives next. */
  readonly nextWorker: () => WorkerId
  readonly log: (message: string) => void
  readonly onCancelled: () => void
  /** It begins to live, or has ended. */
  readonly onLife: (isAlive: boolean) => void
}

/** So many at least are fetched ahead: Crawlee asks for more when one is left. */
const AHEAD_MIN = 4
/** Asked about for as long as Crawlee may still have them in mind. */
const LOST_MAX = 10_000

/**
 * This process as one that claims requests of a queue. Its signs of life begin with the first claim, and end when it
 * is sent to rest with nothing in hand; the next claim begins a new life.
 */
export class QueueWorker {
  readonly #options: QueueWorkerOptions
  readonly #held = new Map<ClaimId, InHand>()
  /** Requests, by id, that were taken from this process while it had them: the last ones. */
  readonly #lost = new Recent<true>(LOST_MAX)
  /** Requests that were put in front of all others since the last claim. */
  #inFront = 0
  #worker: WorkerId = ''
  #life: Promise<SignsOfLife> | null = null
  #timed: Store | null = null
  #claiming: Promise<unknown> = Promise.resolve()
  #fatal: UnstuckError | null = null

  constructor(options: QueueWorkerOptions) {
    this.#options = options
  }

  /** For claims and their ends: how long they wait for it is measured. */
  get store(): Store {
    return this.#timed ?? this.#options.store
  }

  /** It shows signs of life. */
  get isAlive(): boolean {
    return this.#life !== null
  }

  /** What this process has, by the order in which it came. */
  get inHand(): InHand[] {
    return [...this.#held.values()]
  }

  /** A request with this id was in hand here, and was taken back. */
  wasInHand(id: string): boolean {
    return this.#lost.get(id) === true
  }

  /**
   * Claims requests: no more ahead than are being worked on, so that a process that dies leaves few under suspicion, and
   * does not sit on what others could do; but all that was put in front, since Crawlee would handle those that it has before
   * it asks for the rest. One that took a process down is taken alone.
   */
  claim(limit: number): Promise<{ claimed: InHand[]; asked: number }> {
    // One after the other: whether the process is empty must be true.
    const next = this.#claiming.then(() => this.#claim(limit))
    this.#claiming = next.catch(() => {})
    return next
  }

  /** So many come before what was fetched ahead. */
  expectInFront(count: number): void {
    this.#inFront += count
  }

  /** The claim is over, one way or another. */
  end(request: InHand, as: 'saved' | 'taken' | 'over'): void {
    request.state = as
    if (as !== 'saved' && request.isBegun) this.#lost.set(request.request.id, true)
    this.#held.delete(request.claimed.claimId)
    void this.#life?.then((life) => life.ended(request.claimed.claimId)).catch(() => {})
  }

  /** Hands back what nobody has begun; ends if nothing is in hand then. */
  async rest(): Promise<void> {
    await this.#claiming
    await this.handBack(this.inHand.filter(({ isBegun }) => !isBegun))
    if (this.#held.size > 0 || !this.#life) return
    const life = this.#life
    this.#life = null
    this.#options.onLife(false)
    await (await life).stop()
  }

  /** Untouched, claimable at once by anybody. */
  async handBack(requests: readonly InHand[]): Promise<void> {
    if (requests.length === 0) return
    for (const request of requests) request.isEnding = true
    try {
      await whenAvailable(() => this.store.release(requests.map(({ claimed }) => claimed)))
      for (const request of requests) this.end(request, 'taken')
    } finally {
      for (const request of requests) request.isEnding = false
    }
  }

  async #claim(limit: number): Promise<{ claimed: InHand[]; asked: number }> {
    const begun = this.inHand.filter(({ isBegun }) => isBegun).length
    const asked = Math.min(limit, Math.max(AHEAD_MIN, begun, this.#inFront))
    const isSuspectHere = this.inHand.some(({ claimed }) => claimed.suspect)
    const life = await (this.#life ??= this.#live())
    if (this.#fatal) throw this.#fatal
    if (isSuspectHere || asked <= 0 || !life.canClaim()) return { claimed: [], asked }
    const { source } = this.#options
    const claimIds = Array.from({ length: asked }, () => newId())
    life.asking(claimIds)
    this.#inFront = 0
    let claimed: Claimed[] = []
    try {
      const [worker, empty] = [this.#worker, this.#held.size === 0]
      claimed = await whenAvailable(() =>
        this.store.claim({ worker, source, claimIds, empty, alone: false }),
      )
    } finally {
      const given = claimed.map(({ claimId }) => claimId)
      life.answered(claimIds, given)
    }
    const requests = claimed.map((one) => new InHand(this.#options.store, one))
    for (const request of requests) this.#held.set(request.claimed.claimId, request)
    return { claimed: requests, asked }
  }

  async #live(): Promise<SignsOfLife> {
    const { db, policy, source, log, nextWorker, onCancelled, onLife } = this.#options
    this.#worker = nextWorker()
    const caretaker = { worker: this.#worker, source, version: VERSION, ...caretaking(policy) }
    const life = new SignsOfLife(threadSeat(db, caretaker), policy, {
      emit: (event) => {
        const said = sentence(event)
        if (said !== null) log(said)
      },
      onLost: (claims) => this.#lose(claims),
      onCancelled,
      onRecovered: () => {},
      onFatal: (error) => (this.#fatal = error),
    })
    try {
      await life.started()
    } catch (error) {
      this.#life = null
      throw error
    }
    this.#timed = life.timed(this.#options.store)
    onLife(true)
    return life
  }

  /** A beat found that somebody else has them. */
  #lose(claims: readonly ClaimId[]): void {
    for (const request of claims.flatMap((id) => this.#held.get(id) ?? [])) {
      if (request.isEnding) continue
      this.#options.log(`${request.request.url} was taken back: what it pushed is dropped`)
      this.end(request, 'taken')
    }
  }
}
