import { pause } from './demo/pause.ts'
import type { TargetId } from '../../core/model/id.ts'
import type { Millis } from '../../core/model/time.ts'
import { TARGET_STATUS_AFTER } from '../../core/model/verdict.ts'
import type { AuditEntry, Store } from '../../core/store/store.ts'

const BATCH = 1_000
const POLL_MS = 50

/** A target that was taken back from the dead, and the epoch it had there. */
type Orphan = { readonly target: TargetId; readonly epoch: number }

/** What recovery did, from the audit trail, and how long it was from a death until somebody had the target again. */
export class RecoveryTracker {
  /** How often it did what to a target. */
  readonly byAction: Record<string, number> = {}
  /** From a kill to the next claim of what the dead one held, the command's new start included. */
  readonly takenUpMs: number[] = []
  readonly #store: Store
  readonly #kills: Millis[] = []
  #orphans: Orphan[] = []
  #lastEntryId: number | undefined

  constructor(store: Store) {
    this.#store = store
  }

  /** By the store's clock. */
  recordKill(at: Millis): void {
    this.#kills.push(at)
  }

  /** Looks until it is over. */
  async watch(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      // A look that fails is made again: the database may be busy, and what is wrong with it shows elsewhere.
      await this.update().catch(() => {})
      await pause(POLL_MS, signal)
    }
  }

  async update(): Promise<void> {
    await this.#readAudit()
    const waiting: Orphan[] = []
    for (const orphan of this.#orphans) {
      const now = await this.#store.target(orphan.target)
      // Claimed more than once since the last look: when it was first is no longer known.
      const isNext = now?.epoch === orphan.epoch + 1
      if (isNext) this.#recordTakeover(now.claimedAt ?? now.lastActivityAt)
      else if (now?.epoch === orphan.epoch && now.status === 'planned') waiting.push(orphan)
    }
    this.#orphans = waiting
  }

  /** Whoever died in between could not take it up, so it counts from the last death before the claim. */
  #recordTakeover(at: Millis): void {
    const death = this.#kills.findLast((kill) => kill <= at)
    if (death !== undefined) this.takenUpMs.push(Math.round(at - death))
  }

  async #readAudit(): Promise<void> {
    for (let last = BATCH; last === BATCH;) {
      const entries = await this.#store.audit({ limit: BATCH, after: this.#lastEntryId })
      for (const entry of entries) this.#add(entry)
      this.#lastEntryId = entries.at(-1)?.id ?? this.#lastEntryId
      last = entries.length
    }
  }

  #add({ action, target, before }: AuditEntry): void {
    if (target === null || !(action in TARGET_STATUS_AFTER)) return
    this.byAction[action] = (this.byAction[action] ?? 0) + 1
    const { epoch } = before as { epoch?: unknown }
    if (typeof epoch === 'number') this.#orphans.push({ target, epoch })
  }
}
