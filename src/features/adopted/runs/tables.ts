import { messageOf, StoreUnavailable } from '../../../core/model/errors.ts'
import type { AwayTable } from '../../../core/store/store.ts'
import type { Mapping } from '../mapping.ts'
import { openAdoptedTable } from '../table/open-table.ts'
import type { AdoptedTable } from '../table/table.ts'

type Options = {
  readonly address: string
  readonly log: (line: string) => void
}

/** One that is away is not asked again for so long: a command asks many questions, and each may wait for an answer. */
const AGAIN_AFTER_MS = 1_000

/** The tables of the config. Each is found, and fails, by itself: one that is away takes nothing from the others. */
export class Tables {
  readonly #mappings: readonly Mapping[]
  readonly #options: Options
  readonly #opening = new Map<string, Promise<AdoptedTable>>()
  readonly #opened = new Map<string, AdoptedTable>()
  readonly #away = new Map<string, { readonly because: string; readonly until: number }>()

  constructor(mappings: readonly Mapping[], options: Options) {
    this.#mappings = mappings
    this.#options = options
  }

  /** Of all in the config, be they there or not. */
  get names(): string[] {
    return this.#mappings.map(({ name }) => name)
  }

  /** Those of which nothing can be said now, and why. */
  get away(): AwayTable[] {
    return [...this.#away].map(([table, { because }]) => ({ table, because }))
  }

  get remarks(): string[] {
    const said = [...this.#opened.values()].flatMap(({ remarks }) => remarks)
    return [...said, ...this.away.map(sayAway)]
  }

  /** Those that can be asked now: found and checked at the first call. What fails is tried again. */
  async usable(): Promise<AdoptedTable[]> {
    const found = await Promise.all(this.#mappings.map((mapping) => this.#use(mapping)))
    return found.filter((table) => table !== null)
  }

  /** The answers of all that can be asked, and are meant. */
  async ask<T>(
    question: (table: AdoptedTable) => Promise<T>,
    isMeant: (mapping: Mapping) => boolean = () => true,
  ): Promise<T[]> {
    const tables = (await this.usable()).filter(({ mapping }) => isMeant(mapping))
    const answers = await Promise.all(
      tables.map((table) => this.askOne(table, async () => [await question(table)])),
    )
    return answers.flatMap((answer) => answer ?? [])
  }

  /** Null when it cannot answer: then it is away. */
  async askOne<T>(
    { mapping: { name } }: AdoptedTable,
    question: () => Promise<T>,
  ): Promise<T | null> {
    try {
      const answer = await question()
      this.#away.delete(name)
      return answer
    } catch (error) {
      this.#miss(name, error)
      return null
    }
  }

  /** For whoever looked for something everywhere and did not find it: it may be in one that is away. */
  refuseIfAway(name?: string): void {
    const away = this.away.filter(({ table }) => name === undefined || table === name)
    if (away.length > 0) throw new StoreUnavailable(away.map(sayAway).join(' '))
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#opening.values())
    const tables = [...this.#opened.values()]
    this.#opening.clear()
    this.#opened.clear()
    await Promise.allSettled(tables.map((table) => table.close()))
  }

  async #use(mapping: Mapping): Promise<AdoptedTable | null> {
    const { name } = mapping
    const away = this.#away.get(name)
    if (away && performance.now() < away.until) return null
    await this.#dropIfStale(name)
    const opening = this.#opening.get(name) ?? this.#open(mapping)
    this.#opening.set(name, opening)
    try {
      return await opening
    } catch (error) {
      this.#opening.delete(name)
      this.#miss(name, error)
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
    this.#away.delete(mapping.name)
    return table
  }

  /** Trouble that lasts is said once. */
  #miss(name: string, error: unknown): void {
    const because = messageOf(error)
    if (this.#away.get(name)?.because !== because)
      this.#options.log(sayAway({ table: name, because }))
    this.#away.set(name, { because, until: performance.now() + AGAIN_AFTER_MS })
  }
}

function sayAway({ table, because }: AwayTable): string {
  return `The adopted table ${table} cannot be read: ${because}`
}
