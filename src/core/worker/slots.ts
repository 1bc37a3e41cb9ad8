import type { ClaimedTarget } from '../model/claim.ts'
import type { UnstuckError } from '../model/errors.ts'
import type { ClaimId } from '../model/id.ts'

/** A claimed target that is being worked on. */
export type Slot = {
  readonly claimed: ClaimedTarget
  /** Fires to release the target after the page in progress. */
  readonly stop: AbortController
  /** Fires to end the page in progress at once. */
  readonly abort: AbortController
}

/** The targets that a worker works on at the same time. */
export class Slots {
  readonly #slots = new Map<ClaimId, Slot>()
  readonly #running = new Set<Promise<void>>()
  #isolated: ClaimId | null = null

  get size(): number {
    return this.#slots.size
  }

  /**
   * True while a target that crashed a worker before has not saved a page yet. No other target is claimed beside it, so
   * that another crash would count against this target alone.
   */
  get isIsolated(): boolean {
    return this.#isolated !== null
  }

  /** Works on a claimed target until the work ends. The work must not reject. */
  run(claimed: ClaimedTarget, work: (slot: Slot) => Promise<void>): void {
    const { claimId } = claimed
    const slot = { claimed, stop: new AbortController(), abort: new AbortController() }
    this.#slots.set(claimId, slot)
    if (claimed.crashedBefore) this.#isolated = claimId
    const running = work(slot).finally(() => this.#running.delete(running))
    this.#running.add(running)
  }

  free({ claimed }: Slot): void {
    this.#slots.delete(claimed.claimId)
    this.endIsolation(claimed)
  }

  /** Returns true if this target was the isolated one. */
  endIsolation({ claimId }: ClaimedTarget): boolean {
    if (this.#isolated !== claimId) return false
    this.#isolated = null
    return true
  }

  /** Returns the slots of these claims that are still worked on. */
  of(claims: readonly ClaimId[]): Slot[] {
    return claims.flatMap((id) => this.#slots.get(id) ?? [])
  }

  stopAll(): void {
    for (const { stop } of this.#slots.values()) stop.abort()
  }

  abortAll(reason: UnstuckError): void {
    for (const { abort } of this.#slots.values()) abort.abort(reason)
  }

  /** Resolves when no target is worked on any more. */
  async idle(): Promise<void> {
    await Promise.all(this.#running)
  }
}
