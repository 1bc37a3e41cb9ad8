import { messageOf, StoreUnavailableError } from '../../../core/model/errors.ts'
import type { UnreadableTable } from '../../../core/store/store.ts'
import type { Mapping } from '../mapping.ts'
import { type AdoptedTable, openAdoptedTable } from '../table/table.ts'

type AdoptedTablesOptions = {
  readonly address: string
  readonly log: (line: string) => void
}

/** Pause before an unreadable table is tried again: a command makes many queries, and each may wait for a timeout. */
const RETRY_AFTER_MS = 1_000

/** The tables of the config. Each is opened and fails on its own: an unreadable one does not affect the others. */
export class AdoptedTables {
  readonly #mappings: readonly Mapping[]
  readonly #options: AdoptedTablesOptions
  readonly #opening = new Map<string, Promise<AdoptedTable>>()
  readonly #opened = new Map<string, AdoptedTable>()
  readonly #unreadable = new Map<string, { readonly because: string; readonly retryAt: number }>()

  constructor(mappings: readonly Mapping[], options: AdoptedTablesOptions) {
    this.#mappings = mappings
    this.#options = options
  }

  /** All tables of the config, readable or not. */
  get names(): string[] {
    return this.#mappings.map(({ name }) => name)
  }

  /** Tables that cannot be read now, and why. */
  get unreadable(): UnreadableTable[] {
    return [...this.#unreadable].map(([table, { because }]) => ({ table, because }))
  }

  get warnings(): string[] {
    const warnings = [...this.#opened.values()].flatMap(({ warnings }) => warnings)
    return [...warnings, ...this.unreadable.map(unreadableMessage)]
  }

  /** Returns the tables that can be read now. Opens them at the first call, and tries failed ones again. */
  async available(): Promise<AdoptedTable[]> {
    const found = await Promise.all(this.#mappings.map((mapping) => this.#openIfDue(mapping)))
    return found.filter((table) => table !== null)
  }

  /** Returns a table by its name, if it can be read now. */
  async find(name: string): Promise<AdoptedTable | null> {
    return (await this.available()).find(({ mapping }) => mapping.name === name) ?? null
  }

  /** Calls `read` for each readable table. Returns the results. */
  async queryAll<T>(
    read: (table: AdoptedTable) => Promise<T>,
    isIncluded: (mapping: Mapping) => boolean = () => true,
  ): Promise<T[]> {
    const tables = (await this.available()).filter(({ mapping }) => isIncluded(mapping))
    const results = await Promise.all(
      tables.map((table) => this.query(table, async () => [await read(table)])),
    )
    return results.flatMap((result) => result ?? [])
  }

  /** Returns null and marks the table as unreadable if `read` throws. */
  async query<T>({ mapping: { name } }: AdoptedTable, read: () => Promise<T>): Promise<T | null> {
    try {
      const result = await read()
      this.#unreadable.delete(name)
      return result
    } catch (error) {
      this.#markUnreadable(name, error)
      return null
    }
  }

  /** Throws if a table is unreadable. Called when something was not found: it may be in that table. */
  throwIfUnreadable(name?: string): void {
    const unreadable = this.unreadable.filter(({ table }) => name === undefined || table === name)
    if (unreadable.length > 0)
      throw new StoreUnavailableError(unreadable.map(unreadableMessage).join(' '))
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#opening.values())
    const tables = [...this.#opened.values()]
    this.#opening.clear()
    this.#opened.clear()
    await Promise.allSettled(tables.map((table) => table.close()))
  }

  async #openIfDue(mapping: Mapping): Promise<AdoptedTable | null> {
    const { name } = mapping
    const unreadable = this.#unreadable.get(name)
    if (unreadable && performance.now() < unreadable.retryAt) return null
    await this.#dropIfStale(name)
    const opening = this.#opening.get(name) ?? this.#open(mapping)
    this.#opening.set(name, opening)
    try {
      return await opening
    } catch (error) {
      this.#opening.delete(name)
      this.#markUnreadable(name, error)
      return null
    }
  }

  /** Closes a table that was altered, so that it is opened again. */
  async #dropIfStale(name: string): Promise<void> {
    const table = this.#opened.get(name)
    if (!table?.isStale) return
    this.#opened.delete(name)
    this.#opening.delete(name)
    await table.close().catch(() => {})
  }

  async #open(mapping: Mapping): Promise<AdoptedTable> {
    const table = await openAdoptedTable(mapping, mapping.db ?? this.#options.address)
    this.#opened.set(mapping.name, table)
    this.#unreadable.delete(mapping.name)
    return table
  }

  /** Logs a lasting error once. */
  #markUnreadable(name: string, error: unknown): void {
    const because = messageOf(error)
    if (this.#unreadable.get(name)?.because !== because)
      this.#options.log(unreadableMessage({ table: name, because }))
    this.#unreadable.set(name, { because, retryAt: performance.now() + RETRY_AFTER_MS })
  }
}

function unreadableMessage({ table, because }: UnreadableTable): string {
  return `The adopted table ${table} cannot be read: ${because}`
}
