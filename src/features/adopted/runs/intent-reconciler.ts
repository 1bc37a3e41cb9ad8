import { isDeepStrictEqual } from 'node:util'
import { messageOf } from '../../../core/model/errors.ts'
import type { Id } from '../../../core/model/id.ts'
import { describeOrigin } from '../../../core/model/traits.ts'
import type { Mapping } from '../mapping.ts'
import type { Intent } from '../store/store.ts'
import type { AdoptedRow, AdoptedTable } from '../table/table.ts'
import { conclude, isResume, auditOf, statusRecorded, type AdoptedContext } from './intents.ts'
import { snapshotIn } from './row-hash.ts'

/** After this time an open intent counts as abandoned by its process. */
const STALE_AFTER_MS = 30_000
/** Intents of tables that are not in this config may be concluded by a process whose config has them. */
const UNKNOWN_TABLE_AFTER_MS = 3_600_000
const RECONCILE_INTERVAL_MS = 1_000
const PAGE_SIZE = 100
const OPEN_INTENTS_MAX = 10_000

/**
 * Concludes intents of dead processes from the current values of their rows. This resumes rows and writes audit entries,
 * so only processes that change rows do it; commands that only read leave open intents alone.
 */
export class IntentReconciler {
  readonly #context: AdoptedContext
  #last: { readonly at: number; readonly done: Promise<void> } | null = null

  constructor(context: AdoptedContext) {
    this.#context = context
  }

  reconcile(): Promise<void> {
    const done = this.#reconcile()
    this.#last = { at: performance.now(), done }
    return done
  }

  /** Called before each operation; reconciles at most once per interval. */
  reconcileIfDue(): Promise<void> {
    const isDone = this.#last !== null && performance.now() < this.#last.at + RECONCILE_INTERVAL_MS
    return isDone ? this.#last!.done : this.reconcile()
  }

  /** If an intent fails, this is logged, and the intent stays open. */
  async #reconcile(): Promise<void> {
    const { adopted, rows } = this.#context
    const tried = new Set<Id>()
    try {
      const tables = await rows.tables.available()
      // Intents that stay open must not hide those after them.
      for (let limit = PAGE_SIZE; ; limit *= 4) {
        const stale = await adopted.openIntents(STALE_AFTER_MS, limit)
        for (const intent of stale.filter(({ id }) => !tried.has(id))) {
          tried.add(intent.id)
          await reconcileIntent(this.#context, tables, intent).catch((error: unknown) =>
            rows.logOnce(`open change of ${describeOrigin(intent.ref)}: ${messageOf(error)}`),
          )
        }
        if (stale.length < limit) return
      }
    } catch (error) {
      rows.logOnce(`open changes of adopted tables: ${messageOf(error)}`)
    }
  }
}

async function reconcileIntent(
  context: AdoptedContext,
  tables: readonly AdoptedTable[],
  intent: Intent,
): Promise<void> {
  const { store, adopted, rows, resumeHooks } = context
  const { ref, entry, at } = intent
  const table = tables.find(({ mapping }) => mapping.name === ref.table)
  if (!table) {
    const isUnknownTable =
      !rows.tables.names.includes(ref.table) && (await store.now()) - at > UNKNOWN_TABLE_AFTER_MS
    if (isUnknownTable) await conclude(adopted, intent, 'unsure')
    return
  }
  const row = await table.row(ref.key)
  const outcome = outcomeOf(table.mapping, intent, row)
  const isDoneByAnother = outcome === false ? false : await wasDoneByAnother(context, intent)
  if (isDoneByAnother === 'perhaps') return
  const concluded = isDoneByAnother ? false : outcome
  const isOurs = await conclude(adopted, intent, concluded)
  if (isOurs && row && concluded === true && isResume(table.mapping, entry))
    resumeHooks.start(table.mapping, row)
}

/** Returns whether the change was made, by the values of the row; 'unsure' if they are neither the old nor the new ones. */
function outcomeOf(
  mapping: Mapping,
  { entry }: Intent,
  row: AdoptedRow | null,
): boolean | 'unsure' {
  const snapshot = snapshotIn(entry)
  if (!row && entry.action === 'delete') return true
  if (!row || !snapshot) return 'unsure'
  if (Object.entries(snapshot).every(([name, value]) => row.snapshot[name] === value)) return false
  const { status, statusValue } = entry.after as { status?: unknown; statusValue?: unknown }
  const hasValue = String(statusValue).toLowerCase() === row.status.toLowerCase()
  return hasValue && status === statusRecorded(mapping, row, entry) ? true : 'unsure'
}

/**
 * Returns whether a later operation that started from the same values made the change: only one of them can have succeeded.
 * 'perhaps': such an operation is in progress. Called after the row was read, in this order, so that none is missed.
 */
async function wasDoneByAnother(
  { store, adopted }: AdoptedContext,
  intent: Intent,
): Promise<boolean | 'perhaps'> {
  const staleBefore = (await store.now()) - STALE_AFTER_MS
  const open = await adopted.openIntents(0, OPEN_INTENTS_MAX)
  if (open.some(({ row, at }) => row === intent.row && at > staleBefore)) return 'perhaps'
  const previous = snapshotIn(intent.entry)
  const later = (await auditOf(store, intent)).filter(({ at }) => at >= intent.at)
  return previous !== null && later.some((entry) => isDeepStrictEqual(snapshotIn(entry), previous))
}
