import { setImmediate as breathe } from 'node:timers/promises'
import { isId, type Id } from '../../../core/model/id.ts'
import type { AdoptedRef } from '../../../core/model/run.ts'
import type { Store } from '../../../core/store/store.ts'
import { adoptedId, isAdoptedId, WHOLE_TABLE, type Part } from '../ids.ts'
import type { AdoptedTable } from '../table/table.ts'
import type { Tables } from './tables.ts'

export type Found = { readonly table: AdoptedTable; readonly key: string }

const KEYS_PAGE = 5_000
const SHOWN_MAX = 50_000
const NOWHERE_LASTS_MS = 5_000
const NOWHERE_MAX = 1_000
const ENDING_MAX = 10

/** From the ids that rows have with us back to the rows. */
export class Whereabouts {
  readonly #store: Store
  readonly #tables: Tables
  /** Where the rows are that were shown: those of late, and those before them. */
  #shown = new Map<Id, AdoptedRef>()
  #shownBefore = new Map<Id, AdoptedRef>()
  /** Ids that no row has, until when that is believed. */
  readonly #nowhere = new Map<Id, number>()

  constructor(store: Store, tables: Tables) {
    this.#store = store
    this.#tables = tables
  }

  /**
   * Among the rows that were shown, then those that anything was ever done to, then all. Throws when it is not found but
   * may be in a table that is away.
   */
  async find(id: Id): Promise<Found | null> {
    if (!isAdoptedId(id)) return null
    const known = this.#whereShown(id) ?? (await this.#store.adoptedRows([id]))[0]
    const where = known ?? (await this.#searchFor(id))
    if (!where) return null
    const table = (await this.#tables.usable()).find(({ mapping }) => mapping.name === where.table)
    if (!table) this.#tables.refuseIfAway(where.table)
    return table ? { table, key: where.key } : null
  }

  async #searchFor(id: Id): Promise<AdoptedRef | undefined> {
    const until = this.#nowhere.get(id)
    if (until === undefined || performance.now() > until) {
      await this.#walk((one) => one === id, ['run', 'target', 'worker'], 1)
      const found = this.#whereShown(id)
      if (found) return found
      this.#tables.refuseIfAway()
      if (this.#nowhere.size === NOWHERE_MAX) this.#nowhere.clear()
      this.#nowhere.set(id, performance.now() + NOWHERE_LASTS_MS)
    }
    return undefined
  }

  /** The ids of runs, or of targets, that end so. Short ones may be those of many: all rows are looked at. */
  async ending(suffix: string, part: Part): Promise<Id[]> {
    const isWhole = isId(suffix)
    const ids = isWhole
      ? [suffix]
      : await this.#walk((id) => id.endsWith(suffix), [part], ENDING_MAX)
    const fitting: Id[] = []
    for (const id of ids) {
      const found = await this.find(id)
      if (found && adoptedId(found.table.mapping.name, found.key, part) === id) fitting.push(id)
    }
    return fitting
  }

  /** Looks at the ids of all rows there are, and remembers where those are that fit. */
  async #walk(fits: (id: Id) => boolean, parts: readonly Part[], max: number): Promise<Id[]> {
    const ids: Id[] = []
    await this.#tables.ask(async (table) => {
      const { name, kind } = table.mapping
      const lookAt = (key: string, of: readonly Part[]): void => {
        for (const part of of) {
          const id = adoptedId(name, key, part)
          if (!fits(id)) continue
          this.show(id, { table: name, key })
          ids.push(id)
        }
      }
      const ofRows = parts.filter((part) => kind === 'runs' || part !== 'run')
      if (kind === 'targets' && parts.includes('run')) lookAt(WHOLE_TABLE, ['run'])
      for (let after: string | null = null; ofRows.length > 0 && ids.length < max;) {
        const keys: string[] = await table.keys(after, KEYS_PAGE)
        for (const key of keys) lookAt(key, ofRows)
        if (keys.length < KEYS_PAGE) break
        after = keys.at(-1)!
        // SQLite answers without letting go of the thread.
        await breathe()
      }
    })
    return ids
  }

  /** Somebody sees it now, and may come back with its id. */
  show(id: Id, ref: AdoptedRef): void {
    if (this.#shown.size === SHOWN_MAX) {
      this.#shownBefore = this.#shown
      this.#shown = new Map()
    }
    this.#shown.set(id, ref)
  }

  #whereShown(id: Id): AdoptedRef | undefined {
    return this.#shown.get(id) ?? this.#shownBefore.get(id)
  }
}
