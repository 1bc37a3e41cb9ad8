import type { AlertFacts } from './decide.ts'
import type { Millis } from '../../core/model/time.ts'
import { TARGET_STATUS_AFTER } from '../../core/model/verdict.ts'
import type { AuditEntry, Store } from '../../core/store/store.ts'

const PAGE_SIZE = 500
/** Of one look. What is left is read with the next. */
const PAGES_MAX = 10
/** An entry with a lower number may be committed a moment later than one with a higher. */
const OVERLAP = 50

/** Follows the audit trail for runs that lost a worker. A worker with a hundred targets in its hands is one loss. */
export class OrphanTracker {
  readonly #windowMs: number
  readonly #losses = new Map<string, AlertFacts['orphans'][number]>()
  #after: number | null = null

  /** `windowMs`: the longest time that a rule asks for. */
  constructor(windowMs: number) {
    this.#windowMs = windowMs
  }

  async read(store: Store, now: Millis): Promise<AlertFacts['orphans']> {
    if (this.#windowMs === 0) return []
    const since = now - this.#windowMs
    this.#after ??= await startPosition(store)
    let after = Math.max(0, this.#after - OVERLAP)
    for (let page = 0; page < PAGES_MAX; page++) {
      const entries = await store.audit({ since, after, limit: PAGE_SIZE })
      for (const entry of entries) this.#record(entry)
      after = entries.at(-1)?.id ?? after
      this.#after = Math.max(this.#after, after)
      if (entries.length < PAGE_SIZE) break
    }
    for (const [key, { at }] of this.#losses) if (at <= since) this.#losses.delete(key)
    return [...this.#losses.values()]
  }

  #record({ at, source, run, target, action, because, before }: AuditEntry): void {
    const worker = (before as { worker?: unknown } | null)?.worker
    // A timeout took the target from a worker that lives.
    const isLoss =
      target !== null && action in TARGET_STATUS_AFTER && !because.startsWith('timeout:')
    if (isLoss && typeof worker === 'string') this.#losses.set(`${run} ${worker}`, { at, source })
  }
}

/** No further back than one look can read: a trail may be long. */
async function startPosition(store: Store): Promise<number> {
  const [last] = await store.audit({ newestFirst: true, limit: 1 })
  return Math.max(0, (last?.id ?? 0) - PAGE_SIZE * PAGES_MAX + OVERLAP)
}
