import type { ObserverHealth } from '../decide/liveness.ts'
import type { HeartbeatResult } from '../store/store.ts'

/** The heartbeats of this process, from which follows how far its view of other workers can be trusted. */
export class OwnHealth {
  readonly #gapMs: number
  #consecutive = 0
  #lastAt: number | null = null
  /** End of the last gap; before the first gap there is no limit. */
  #stableSince = -Infinity
  /** First heartbeat, or end of the last gap. */
  #connectedSince = Infinity
  #serverUpMs = Infinity

  constructor(heartbeatMs: number) {
    this.#gapMs = 2 * heartbeatMs
  }

  /** Don't declare others dead while our own heartbeats are failing. */
  get isTrusted(): boolean {
    return this.#consecutive >= 2
  }

  accepted({ now: storeNow, serverStartedAt }: HeartbeatResult, now: number): void {
    if (this.#lastAt === null) this.#connectedSince = now
    else if (now - this.#lastAt > this.#gapMs) this.#stableSince = this.#connectedSince = now
    this.#lastAt = now
    this.#consecutive++
    this.#serverUpMs = serverStartedAt === null ? Infinity : storeNow - serverStartedAt
  }

  missed(): void {
    this.#consecutive = 0
  }

  at(now: number): ObserverHealth {
    // A process that was suspended may sweep before its next heartbeat shows the gap.
    const isInGap = this.#lastAt !== null && now - this.#lastAt > this.#gapMs
    return {
      consecutiveHeartbeats: this.#consecutive,
      stableForMs: isInGap ? 0 : Math.min(now - this.#stableSince, this.#serverUpMs),
      connectedForMs: isInGap ? 0 : now - this.#connectedSince,
    }
  }
}
