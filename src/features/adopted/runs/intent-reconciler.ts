import { isDeepStrictEqual } from 'node:util'
import { messageOf } from '../../../core/model/errors.ts'
import type { Id } from '../../../core/model/id.ts'
import { describeRow } from '../../../core/model/run.ts'
import type { Intent, Store } from '../../../core/store/store.ts'
import type { AdoptedRow, AdoptedTable } from '../table/table.ts'
import { conclude, isResume, auditOf, type AdoptedContext } from './intents.ts'
import { snapshotIn } from './row-hash.ts'

/** So long a process may take between its intent and what became of it. */
const STALE_AFTER_MS = 30_000
/** Those of tables that this config does not have may yet be settled by somebody whose config has them. */
const UNKNOWN_TABLE_AFTER_MS = 3_600_000
const RECONCILE_INTERVAL_MS = 1_000
const PAGE_SIZE = 100
const OPEN_INTENTS_MAX = 10_000

/**
 * Settles the intents that processes which died have left, by what stands in the rows. That starts rows again and writes
 * to the trail, so it is for those who are about to do something themselves: who only looks leaves them where they are.
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

  /** Before a deed: of many in a row, the first. */
  reconcileIfDue(): Promise<void> {
    const isDone = this.#last !== null && performance.now() < this.#last.at + RECONCILE_INTERVAL_MS
    return isDone ? this.#last!.done : this.reconcile()
  }

  /** What goes wrong with one is logged, and it stays. */
  async #reconcile(): Promise<void> {
    const { store, rows } = this.#context
    const tried = new Set<Id>()
    try {
      const tables = await rows.tables.available()
      // Those that stay must not hide the ones behind them.
      for (let limit = PAGE_SIZE; ; limit *= 4) {
        const stale = await store.openIntents(STALE_AFTER_MS, limit)
        for (const intent of stale.filter(({ id }) => !tried.has(id))) {
          tried.add(intent.id)
          await reconcileIntent(this.#context, tables, intent).catch((error: unknown) =>
            rows.logOnce(`what was begun on ${describeRow(intent.ref)}: ${messageOf(error)}`),
          )
        }
        if (stale.length < limit) return
      }
    } catch (error) {
      rows.logOnce(`what was begun on adopted tables: ${messageOf(error)}`)
    }
  }
}

async function reconcileIntent(
  { store, rows, resumeHooks }: AdoptedContext,
  tables: readonly AdoptedTable[],
  intent: Intent,
): Promise<void> {
  const { ref, entry, at } = intent
  const table = tables.find(({ mapping }) => mapping.name === ref.table)
  if (!table) {
    const isUnknownTable =
      !rows.tables.names.includes(ref.table) && (await store.now()) - at > UNKNOWN_TABLE_AFTER_MS
    if (isUnknownTable) await conclude(store, intent, 'unsure')
    return
  }
  const row = await table.row(ref.key)
  const outcome = outcomeOf(intent, row)
  const isDoneByAnother = outcome === false ? false : await wasDoneByAnother(store, intent)
  if (isDoneByAnother === 'perhaps') return
  const concluded = isDoneByAnother ? false : outcome
  const isOurs = await conclude(store, intent, concluded)
  if (isOurs && row && concluded === true && isResume(table.mapping, entry))
    resumeHooks.start(table.mapping, row)
}

/** By what stands in the row now: what was there before, what was to be written, or what somebody made of it since. */
function outcomeOf({ entry }: Intent, row: AdoptedRow | null): boolean | 'unsure' {
  const snapshot = snapshotIn(entry)
  if (!row || !snapshot) return 'unsure'
  if (Object.entries(snapshot).every(([name, value]) => row.snapshot[name] === value)) return false
  const { statusValue } = entry.after as { statusValue?: unknown }
  return String(statusValue).toLowerCase() === row.status.toLowerCase() ? true : 'unsure'
}

/**
 * Whether what stands in the row is the work of somebody who came after this intent and found the same there: of those,
 * only one can have changed it. Perhaps: one is at it now. Asked when the row was read, in this order, so that none is missed.
 */
async function wasDoneByAnother(store: Store, intent: Intent): Promise<boolean | 'perhaps'> {
  const staleBefore = (await store.now()) - STALE_AFTER_MS
  const open = await store.openIntents(0, OPEN_INTENTS_MAX)
  if (open.some(({ row, at }) => row === intent.row && at > staleBefore)) return 'perhaps'
  const previous = snapshotIn(intent.entry)
  const later = (await auditOf(store, intent)).filter(({ at }) => at >= intent.at)
  return previous !== null && later.some((entry) => isDeepStrictEqual(snapshotIn(entry), previous))
}
