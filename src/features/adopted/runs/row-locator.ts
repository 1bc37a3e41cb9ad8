import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { isId, type Id } from '../../../core/model/id.ts'
import type { RunOrigin } from '../../../core/model/traits.ts'
import { adoptedId, isAdoptedId, TABLE_RUN_KEY, type EntityKind } from '../ids.ts'
import type { AdoptedStore } from '../store/store.ts'
import type { AdoptedTable } from '../table/table.ts'
import type { AdoptedTables } from './tables.ts'

export type RowLocation = { readonly table: AdoptedTable; readonly key: string }

const KEYS_PAGE_SIZE = 5_000
const KNOWN_MAX = 50_000
const MISSING_TTL_MS = 5_000
const MISSING_MAX = 1_000
const ENDING_MAX = 10

/** Finds rows by the ids that were derived from their keys. */
export class RowLocator {
  readonly #adopted: AdoptedStore
  readonly #tables: AdoptedTables
  /** Rows that were returned before, in two generations. */
  #recent = new Map<Id, RunOrigin>()
  #older = new Map<Id, RunOrigin>()
  /** Ids that were not found, with the end of their validity. */
  readonly #missing = new Map<Id, number>()

  constructor(adopted: AdoptedStore, tables: AdoptedTables) {
    this.#adopted = adopted
    this.#tables = tables
  }

  /**
   * Searches rows that were returned before, then rows with audit entries, then all. Throws if the id is not found and a
   * table is unreadable.
   */
  async find(id: Id): Promise<RowLocation | null> {
    if (!isAdoptedId(id)) return null
    const known = this.#remembered(id) ?? (await this.#adopted.rememberedRows([id]))[0]
    const ref = known ?? (await this.#search(id))
    if (!ref) return null
    const table = await this.#tables.find(ref.table)
    if (!table) this.#tables.throwIfUnreadable(ref.table)
    return table ? { table, key: ref.key } : null
  }

  async #search(id: Id): Promise<RunOrigin | undefined> {
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

  /** Returns the ids with this suffix. Reads the keys of all rows. */
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

  /** Returns the ids of rows by the user's own id: `4711`, or with the name of the table `courses:4711`. */
  async idsOfKey(text: string, entity: EntityKind): Promise<Id[]> {
    const found = await this.#tables.queryAll(
      async (table) => {
        const { name } = table.mapping
        const keys = text.startsWith(`${name}:`) ? [text, text.slice(name.length + 1)] : [text]
        const rows = await Promise.all(keys.map((key) => table.row(key)))
        return rows.flatMap((row) => {
          if (row === null) return []
          const id = adoptedId(name, row.key, entity)
          this.remember(id, { table: name, key: row.key })
          return id
        })
      },
      ({ kind }) => entity === (kind === 'runs' ? 'run' : 'target'),
    )
    return found.flat()
  }

  /** Computes the ids of all rows, and remembers the matching ones. */
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
        // SQLite queries block the event loop.
        await yieldToEventLoop()
      }
    })
    return ids
  }

  /** Remembers a row whose id is returned to a caller. */
  remember(id: Id, ref: RunOrigin): void {
    if (this.#recent.size === KNOWN_MAX) {
      this.#older = this.#recent
      this.#recent = new Map()
    }
    this.#recent.set(id, ref)
  }

  #remembered(id: Id): RunOrigin | undefined {
    return this.#recent.get(id) ?? this.#older.get(id)
  }
}
