import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { isId, type Id } from '../../../core/model/id.ts'
import type { AdoptedRef } from '../../../core/model/run.ts'
import type { Store } from '../../../core/store/store.ts'
import { adoptedId, isAdoptedId, TABLE_RUN_KEY, type EntityKind } from '../ids.ts'
import type { AdoptedTable } from '../table/table.ts'
import type { AdoptedTables } from './tables.ts'

export type RowLocation = { readonly table: AdoptedTable; readonly key: string }

const KEYS_PAGE_SIZE = 5_000
const KNOWN_MAX = 50_000
const MISSING_TTL_MS = 5_000
const MISSING_MAX = 1_000
const ENDING_MAX = 10

/** From the ids that rows have with us back to the rows. */
export class RowLocator {
  readonly #store: Store
  readonly #tables: AdoptedTables
  /** Where the rows are that were shown: those of late, and those before them. */
  #recent = new Map<Id, AdoptedRef>()
  #older = new Map<Id, AdoptedRef>()
  /** Ids that no row has, until when that is believed. */
  readonly #missing = new Map<Id, number>()

  constructor(store: Store, tables: AdoptedTables) {
    this.#store = store
    this.#tables = tables
  }

  /**
   * Among the rows that were shown, then those that anything was ever done to, then all. Throws when it is not found but
   * may be in a table that is away.
   */
  async find(id: Id): Promise<RowLocation | null> {
    if (!isAdoptedId(id)) return null
    const known = this.#remembered(id) ?? (await this.#store.rememberedRows([id]))[0]
    const ref = known ?? (await this.#search(id))
    if (!ref) return null
    const table = (await this.#tables.available()).find(({ mapping }) => mapping.name === ref.table)
    if (!table) this.#tables.throwIfUnreadable(ref.table)
    return table ? { table, key: ref.key } : null
  }

  async #search(id: Id): Promise<AdoptedRef | undefined> {
    const until = this.#missing.get(id)
    if (until === undefined || performance.now() > until) {
      await this.#scan((one) => one === id, ['run', 'target', 'worker'], 1)
      const found = this.#remembered(id)
      if (found) return found
      this.#tables.throwIfUnreadable()
      if (this.#missing.size === MISSING_MAX) this.#missing.clear()
      this.#missing.set(id, performance.now() + MISSING_TTL_MS)
    }
    return undefined
  }

  /** The ids of runs, or of targets, that end so. Short ones may be those of many: all rows are looked at. */
  async idsEnding(suffix: string, entity: EntityKind): Promise<Id[]> {
    const isFullId = isId(suffix)
    const ids = isFullId
      ? [suffix]
      : await this.#scan((id) => id.endsWith(suffix), [entity], ENDING_MAX)
    const matching: Id[] = []
    for (const id of ids) {
      const found = await this.find(id)
      if (found && adoptedId(found.table.mapping.name, found.key, entity) === id) matching.push(id)
    }
    return matching
  }

  /** Looks at the ids of all rows there are, and remembers where those are that fit. */
  async #scan(
    matches: (id: Id) => boolean,
    entities: readonly EntityKind[],
    max: number,
  ): Promise<Id[]> {
    const ids: Id[] = []
    await this.#tables.queryAll(async (table) => {
      const { name, kind } = table.mapping
      const addMatches = (key: string, entitiesOfKey: readonly EntityKind[]): void => {
        for (const entity of entitiesOfKey) {
          const id = adoptedId(name, key, entity)
          if (!matches(id)) continue
          this.remember(id, { table: name, key })
          ids.push(id)
        }
      }
      const rowEntities = entities.filter((entity) => kind === 'runs' || entity !== 'run')
      if (kind === 'targets' && entities.includes('run')) addMatches(TABLE_RUN_KEY, ['run'])
      for (let after: string | null = null; rowEntities.length > 0 && ids.length < max;) {
        const keys: string[] = await table.keys(after, KEYS_PAGE_SIZE)
        for (const key of keys) addMatches(key, rowEntities)
        if (keys.length < KEYS_PAGE_SIZE) break
        after = keys.at(-1)!
        // SQLite answers without letting go of the thread.
        await yieldToEventLoop()
      }
    })
    return ids
  }

  /** Somebody sees it now, and may come back with its id. */
  remember(id: Id, ref: AdoptedRef): void {
    if (this.#recent.size === KNOWN_MAX) {
      this.#older = this.#recent
      this.#recent = new Map()
    }
    this.#recent.set(id, ref)
  }

  #remembered(id: Id): AdoptedRef | undefined {
    return this.#recent.get(id) ?? this.#older.get(id)
  }
}
