import { isDeepStrictEqual } from 'node:util'
import { messageOf } from '../../../core/model/errors.ts'
import type { Id } from '../../../core/model/id.ts'
import { sayRow } from '../../../core/model/run.ts'
import type { Intent, Store } from '../../../core/store/store.ts'
import type { AdoptedRow, AdoptedTable } from '../table/table.ts'
import { conclude, isResumption, trailOf, type Desk } from './intents.ts'
import { stampIn } from './row-hash.ts'

/** So long a process may take between its intent and what became of it. */
const LEFT_AFTER_MS = 30_000
/** Those of tables that this config does not have may yet be settled by somebody whose config has them. */
const STRANGE_AFTER_MS = 3_600_000
const LATELY_MS = 1_000
const LEFT_PAGE = 100
const OPEN_MAX = 10_000

/**
 * Settles the intents that processes which died have left, by what stands in the rows. That starts rows again and writes
 * to the trail, so it is for those who are about to do something themselves: who only looks leaves them where they are.
 */
export class Settling {
  readonly #desk: Desk
  #last: { readonly at: number; readonly done: Promise<void> } | null = null

  constructor(desk: Desk) {
    this.#desk = desk
  }

  now(): Promise<void> {
    const done = this.#settle()
    this.#last = { at: performance.now(), done }
    return done
  }

  /** Before a deed: of many in a row, the first. */
  lately(): Promise<void> {
    const isDone = this.#last !== null && performance.now() < this.#last.at + LATELY_MS
    return isDone ? this.#last!.done : this.now()
  }

  /** What goes wrong with one is logged, and it stays. */
  async #settle(): Promise<void> {
    const { store, rows } = this.#desk
    const tried = new Set<Id>()
    try {
      const tables = await rows.tables.usable()
      // Those that stay must not hide the ones behind them.
      for (let limit = LEFT_PAGE; ; limit *= 4) {
        const left = await store.openIntents(LEFT_AFTER_MS, limit)
        for (const intent of left.filter(({ id }) => !tried.has(id))) {
          tried.add(intent.id)
          await settleOne(this.#desk, tables, intent).catch((error: unknown) =>
            rows.sayOnce(`what was begun on ${sayRow(intent.ref)}: ${messageOf(error)}`),
          )
        }
        if (left.length < limit) return
      }
    } catch (error) {
      rows.sayOnce(`what was begun on adopted tables: ${messageOf(error)}`)
    }
  }
}

async function settleOne(
  { store, rows, resumption }: Desk,
  tables: readonly AdoptedTable[],
  intent: Intent,
): Promise<void> {
  const { ref, entry, at } = intent
  const table = tables.find(({ mapping }) => mapping.name === ref.table)
  if (!table) {
    const isStrange =
      !rows.tables.names.includes(ref.table) && (await store.now()) - at > STRANGE_AFTER_MS
    if (isStrange) await conclude(store, intent, 'unsure')
    return
  }
  const row = await table.row(ref.key)
  const seen = whatBecame(intent, row)
  const isAnothers = seen === false ? false : await doneByAnother(store, intent)
  if (isAnothers === 'perhaps') return
  const became = isAnothers ? false : seen
  const isOurs = await conclude(store, intent, became)
  if (isOurs && row && became === true && isResumption(table.mapping, entry))
    resumption.start(table.mapping, row)
}

/** By what stands in the row now: what was there before, what was to be written, or what somebody made of it since. */
function whatBecame({ entry }: Intent, row: AdoptedRow | null): boolean | 'unsure' {
  const stamp = stampIn(entry)
  if (!row || !stamp) return 'unsure'
  if (Object.entries(stamp).every(([name, value]) => row.stamp[name] === value)) return false
  const { word } = entry.after as { word?: unknown }
  return String(word).toLowerCase() === row.word.toLowerCase() ? true : 'unsure'
}

/**
 * Whether what stands in the row is the work of somebody who came after this intent and found the same there: of those,
 * only one can have changed it. Perhaps: one is at it now. Asked when the row was read, in this order, so that none is missed.
 */
async function doneByAnother(store: Store, intent: Intent): Promise<boolean | 'perhaps'> {
  const leftBefore = (await store.now()) - LEFT_AFTER_MS
  const open = await store.openIntents(0, OPEN_MAX)
  if (open.some(({ row, at }) => row === intent.row && at > leftBefore)) return 'perhaps'
  const stood = stampIn(intent.entry)
  const later = (await trailOf(store, intent)).filter(({ at }) => at >= intent.at)
  return stood !== null && later.some((entry) => isDeepStrictEqual(stampIn(entry), stood))
}
