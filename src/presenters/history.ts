import { iso, type Millis } from '../core/model/time.ts'
import type { RunId } from '../core/model/id.ts'
import type { AuditCount, AuditEntry, Store } from '../core/store/store.ts'
import { auditView } from './view.ts'

export type HistoryFilter = {
  readonly since?: Millis | undefined
  readonly source?: string | undefined
  readonly run?: RunId | undefined
  readonly action?: string | undefined
}

/** A part of the audit trail, newest first, and how often what was done to whose runs. */
export type History = {
  readonly counts: readonly AuditCount[]
  readonly items: readonly AuditEntry[]
  /** Where the next part begins; null at the end. */
  readonly next: number | null
}

const BATCH_SIZE = 500
/** Looked through at most for one answer. */
const BATCHES_MAX = 40
const RUN_ENTRIES_MAX = 10_000

export async function readHistory(
  store: Store,
  filter: HistoryFilter,
  page: { readonly after?: number | undefined; readonly limit: number },
): Promise<History> {
  return { ...(await readEntries(store, filter, page)), counts: await countActions(store, filter) }
}

/** What `history` answers. */
export function historyView({ counts, items, next }: History) {
  return {
    counts: counts.map(({ lastAt, ...count }) => ({ ...count, lastAt: iso(lastAt) })),
    items: items.map(auditView),
    next,
  }
}

/** The trail is not kept by action: where one is asked for, an answer may be short and still have a next one. */
async function readEntries(
  store: Store,
  { action, ...filter }: HistoryFilter,
  { after, limit }: { after?: number | undefined; limit: number },
): Promise<Pick<History, 'items' | 'next'>> {
  const batch = action === undefined ? limit + 1 : BATCH_SIZE
  const found: AuditEntry[] = []
  let last = after
  for (let n = 0; n < BATCHES_MAX; n++) {
    const entries = await store.audit({ ...filter, newestFirst: true, after: last, limit: batch })
    found.push(...entries.filter((entry) => action === undefined || entry.action === action))
    if (found.length > limit) {
      const items = found.slice(0, limit)
      return { items, next: items.at(-1)!.id }
    }
    if (entries.length < batch) return { items: found, next: null }
    last = entries.at(-1)!.id
  }
  return { items: found, next: last ?? null }
}

async function countActions(
  store: Store,
  { since, source, run, action }: HistoryFilter,
): Promise<AuditCount[]> {
  const counts =
    run === undefined
      ? await store.auditCounts({
          ...(since !== undefined && { since }),
          ...(source !== undefined && { source }),
        })
      : countEntries(
          await store.audit({ run, since, source, newestFirst: true, limit: RUN_ENTRIES_MAX }),
        )
  return counts.filter((count) => action === undefined || count.action === action)
}

/** Of one run, newest first. */
function countEntries(entries: readonly AuditEntry[]): AuditCount[] {
  const groups = Map.groupBy(entries, (entry) => entry.action)
  return [...groups]
    .map(([action, all]) => ({
      source: all[0]!.source,
      action,
      count: all.length,
      lastAt: all[0]!.at,
    }))
    .sort((a, b) => (a.action < b.action ? -1 : 1))
}
