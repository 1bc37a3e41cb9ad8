import { messageOf, StoreUnavailableError } from '../../../core/model/errors.ts'
import type { UnreadableTable } from '../../../core/store/store.ts'
import type { Mapping } from '../mapping.ts'
import { type AdoptedTable, openAdoptedTable } from '../table/table.ts'

type AdoptedTablesOptions = {
  readonly address: string
  readonly log: (line: string) => void
}

/** One that is away is not asked again for so long: a command asks many questions, and each may wait for an answer. */
const RETRY_AFTER_MS = 1_000

/** The tables of the config. Each is found, and fails, by itself: one that is away takes nothing from the others. */
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

  /** Of all in the config, be they there or not. */
  get names(): string[] {
    return this.#mappings.map(({ name }) => name)
  }

  /** Those of which nothing can be said now, and why. */
  get unreadable(): UnreadableTable[] {
    return [...this.#unreadable].map(([table, { because }]) => ({ table, because }))
  }

  get warnings(): string[] {
    const warnings = [...this.#opened.values()].flatMap(({ warnings }) => warnings)
    return [...warnings, ...this.unreadable.map(unreadableMessage)]
  }

  /** Those that can be asked now: found and checked at the first call. What fails is tried again. */
  async available(): Promise<AdoptedTable[]> {
    const found = await Promise.all(this.#mappings.map((mapping) => this.#openIfDue(mapping)))
    return found.filter((table) => table !== null)
  }

  /** The answers of all that can be asked, and are meant. */
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

  /** Null when it cannot answer: then it is away. */
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

  /** For whoever looked for something everywhere and did not find it: it may be in one that is away. */
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

  /** Somebody altered it: what was found of it then is forgotten. */
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

  /** Trouble that lasts is said once. */
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
