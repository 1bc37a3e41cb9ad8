import type { HeartbeatClient } from '../../../core/heartbeat/client.ts'
import type { ClaimedTarget } from '../../../core/model/claim.ts'
import { LeaseLostError, messageOf } from '../../../core/model/errors.ts'
import type { Emit } from '../../../core/model/event.ts'
import type { ClaimId, TargetId } from '../../../core/model/id.ts'
import type { ClaimEnd, ClaimEndReply } from './claim-end.ts'
import { HeldTarget } from './held-target.ts'

export type HeldTargetsOptions = {
  readonly heartbeat: Pick<HeartbeatClient, 'released'>
  readonly emit: Emit
  /** A target that was worked on alone no longer is: others can be claimed. */
  readonly onIsolationEnd: () => void
}

type EndedClaim = {
  readonly held: HeldTarget
  readonly by: ClaimEnd['by']
  readonly reply: ClaimEndReply
}

/** Claims that ended are remembered, so that a call whose reply got lost can be repeated. */
const ENDED_MAX = 500

/** The targets that a command holds, those whose claim it ended, and those that it lost. */
export class HeldTargets {
  readonly #options: HeldTargetsOptions
  readonly #held = new Map<TargetId, HeldTarget>()
  readonly #ended = new Map<TargetId, EndedClaim>()
  readonly #lost = new Set<TargetId>()
  #isolated: HeldTarget | null = null

  constructor(options: HeldTargetsOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#held.size
  }

  get all(): readonly HeldTarget[] {
    return [...this.#held.values()]
  }

  /** True while a target that crashed a worker before has not saved a page: no other is claimed beside it. */
  get isIsolated(): boolean {
    return this.#isolated !== null
  }

  /** The target may still be held under an earlier claim that ended: the reply to that call comes later. */
  add(claimed: ClaimedTarget): HeldTarget {
    const held = new HeldTarget(claimed)
    const { run, target, key, epoch, page, crashedBefore } = claimed
    const before = this.#held.get(target)
    if (before) this.#remove(before)
    this.#held.set(target, held)
    this.#ended.delete(target)
    this.#lost.delete(target)
    if (crashedBefore) this.#isolated = held
    this.#options.emit({ type: 'target_start', run, target, key, epoch, page })
    return held
  }

  /** Returns false if this claim of the target has ended, also if the target was claimed again since. */
  isHeld(held: HeldTarget): boolean {
    return this.#held.get(held.id) === held
  }

  /** Returns a target that is held, or whose claim ended here. Throws `LeaseLostError` for any other. */
  find(target: TargetId): HeldTarget {
    const found = this.#held.get(target) ?? this.#ended.get(target)?.held
    return found ?? this.refuse(target)
  }

  refuse(target: TargetId): never {
    throw new LeaseLostError({ target, epoch: 0 }, 'this process does not hold it')
  }

  /**
   * Returns the reply to the call that ended the claim, for a repetition of it; undefined if the claim has not ended here.
   * Throws `LeaseLostError` for another end, which nothing would be written for. To release again is always done.
   */
  endOf(held: HeldTarget, by: ClaimEnd['by']): ClaimEndReply | undefined {
    const ended = this.#ended.get(held.id)
    if (ended?.held !== held) return undefined
    return by === ended.by || by === 'release' ? ended.reply : this.refuse(held.id)
  }

  /** A page of the target was saved. */
  endIsolation(held: HeldTarget): void {
    if (this.#isolated !== held) return
    this.#isolated = null
    this.#options.onIsolationEnd()
  }

  /** The claim has ended here. */
  end(held: HeldTarget, by: ClaimEnd['by'], reply: ClaimEndReply): ClaimEndReply {
    if (!this.isHeld(held)) return reply
    this.#ended.set(held.id, { held, by, reply })
    const [oldest] = this.#ended.keys()
    if (this.#ended.size > ENDED_MAX) this.#ended.delete(oldest!)
    this.#remove(held)
    return reply
  }

  /** The claim was lost. */
  drop(held: HeldTarget, error: Error): void {
    if (!this.isHeld(held)) return
    const { run, target, key } = held.claimed
    this.#lost.add(target)
    this.#remove(held)
    this.#options.emit({ type: 'lease_lost', run, target, key, because: messageOf(error) })
  }

  /** A heartbeat found these claims lost. */
  dropClaims(claims: readonly ClaimId[]): void {
    for (const held of this.all.filter(({ claim }) => claims.includes(claim.claimId)))
      this.drop(held, new LeaseLostError(held.claim, 'the claim was revoked'))
  }

  /** Returns the targets that were lost since the last call. */
  takeLost(): TargetId[] {
    const lost = [...this.#lost]
    this.#lost.clear()
    return lost
  }

  #remove(held: HeldTarget): void {
    this.#held.delete(held.id)
    this.#options.heartbeat.released(held.claim.claimId)
    this.endIsolation(held)
  }
}
