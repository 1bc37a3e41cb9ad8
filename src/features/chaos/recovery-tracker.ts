import { REAL_CLOCK } from '../../core/host/clock.ts'
import type { TargetId, WorkerId } from '../../core/model/id.ts'
import type { Target } from '../../core/model/target.ts'
import type { Millis } from '../../core/model/time.ts'
import { TARGET_STATUS_AFTER } from '../../core/model/verdict.ts'
import type { AuditEntry, Store } from '../../core/store/store.ts'

const BATCH = 1_000
const POLL_MS = 50

/** A recovered target, and the epoch of its lost claim. */
type Orphan = { readonly target: TargetId; readonly epoch: number }

/** Follows the audit log: what recovery did, and the time from a kill to the next claim. */
export class RecoveryTracker {
  /** Number of verdicts on targets, by action. */
  readonly byAction: Record<string, number> = {}
  /** From a kill to the next claim of a lost target, including the restart of the command. */
  readonly reclaimedMs: number[] = []
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

  /** Polls until the signal fires. */
  async watch(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      // A failed read is repeated: the database may be busy, and its errors show elsewhere.
      await this.update().catch(() => {})
      await REAL_CLOCK.sleep(POLL_MS, signal)
    }
  }

  async update(): Promise<void> {
    await this.#readAudit()
    const waiting: Orphan[] = []
    for (const orphan of this.#orphans) {
      const now = await this.#store.target(orphan.target)
      // Claimed more than once since the last read: the time of the first claim is no longer known.
      const isNext = now?.epoch === orphan.epoch + 1
      if (isNext) this.#recordTakeover(now.claimedAt ?? now.lastActivityAt)
      else if (now?.epoch === orphan.epoch && now.status === 'planned') waiting.push(orphan)
    }
    this.#orphans = waiting
  }

  /** Counts from the last kill before the claim: workers killed in between could not claim it. */
  #recordTakeover(at: Millis): void {
    const death = this.#kills.findLast((kill) => kill <= at)
    if (death !== undefined) this.reclaimedMs.push(Math.round(at - death))
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

/** How a target of a killed worker was recovered. Times count from the kill. */
export type Recovery = {
  /** Until the target could be claimed. */
  readonly claimableMs: number
  /** Until a worker had claimed it. */
  readonly reclaimedMs: number
  readonly by: WorkerId | null
  /** The reason of the verdict; null if there was none after the kill. */
  readonly because: string | null
}

/**
 * Reads what became of a target after its worker was killed. Returns null while it waits, and `recovery: null` when
 * nothing had to be recovered: its last write had reached the database.
 */
export async function readRecovery(
  store: Store,
  orphan: Target,
  killedAt: Millis,
): Promise<{ recovery: Recovery | null } | null> {
  const now = await store.target(orphan.id)
  if (!now) return null
  if (now.epoch > orphan.epoch) {
    // A target that was done or released since then has no claim; its last activity is later.
    const reclaimedMs = Math.round((now.claimedAt ?? now.lastActivityAt) - killedAt)
    const history = await store.audit({ run: orphan.run, target: orphan.id, limit: 1_000 })
    const verdict = history.find(({ at }) => at >= killedAt)
    const claimableMs = verdict ? Math.round(verdict.at - killedAt) : reclaimedMs
    const because = verdict?.because ?? null
    return { recovery: { claimableMs, reclaimedMs, by: now.worker, because } }
  }
  const endedByItself = now.status === 'done' || now.errors > orphan.errors
  return endedByItself ? { recovery: null } : null
}
