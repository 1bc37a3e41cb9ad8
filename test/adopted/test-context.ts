import { operatorContext } from '../../src/testing/fixtures.ts'
import { withAdoptedTables } from '../../src/features/adopted/store-wrapper.ts'
import {
  ADOPTED_STORE,
  type AdoptedStore,
  type Intent,
} from '../../src/features/adopted/store/store.ts'
import type { AdoptedOptions, Mapping } from '../../src/features/adopted/mapping.ts'
import { DEFAULT_POLICY, type Policy } from '../../src/core/model/policy.ts'
import type { Run } from '../../src/core/model/run.ts'
import { readAdopted } from '../../src/features/adopted/config.ts'
import type { OperatorContext } from '../../src/core/recovery/context.ts'
import { openStore } from '../../src/core/store/open.ts'
import type { Store } from '../../src/core/store/store.ts'
import type { Engine } from '../../src/testing/test-database.ts'
import {
  engineOf,
  insertRows,
  createUserTable,
  readUserRows,
  runUserSql,
  type NewRow,
  type UserTable,
} from '../../src/testing/user-tables.ts'

/** A table as its owner has it, and what is said of it beyond what every owner would say. */
export type TableFixture = {
  readonly table: UserTable
  readonly rows?: readonly NewRow[]
  readonly options?: Partial<AdoptedOptions>
}

/** A user's database with tables of their own, and Unstuck beside it. */
export type AdoptedTestContext = AsyncDisposable & {
  /** In which the rows are runs. */
  readonly store: Store
  readonly operator: OperatorContext
  /** Where the tables are. */
  readonly url: string
  /** What was logged. */
  readonly lines: string[]
  readonly mappings: readonly Mapping[]
  /** Another process's way to the same. `inFront`: something between it and Unstuck's own database. */
  openAnother(inFront?: (own: Store) => Store): Promise<Store>
  /** The run that a row is. */
  run(name: string, key: string | number): Promise<Run>
  /** Whole rows, as their owner sees them. */
  rows(name: string): Promise<Record<string, unknown>[]>
  /** A statement of the user's own program. */
  sql(text: string): Promise<Record<string, unknown>[]>
}

export function minutesAgo(minutes: number): Date {
  return new Date(Date.now() - minutes * 60_000)
}

export async function createAdoptedTestContext(
  engine: Engine,
  fixtures: Readonly<Record<string, TableFixture>>,
  base: Partial<Policy> = {},
): Promise<AdoptedTestContext> {
  const database = await engine.fresh()
  const { url } = database
  const mistakes: string[] = []
  const adopted: Record<string, AdoptedOptions> = {}
  for (const [name, { table, rows = [], options = {} }] of Object.entries(fixtures)) {
    await createUserTable(url, table)
    await insertRows(url, table, rows)
    adopted[name] = { ...table.options[engineOf(url)], ...options }
  }
  const defaults = { folder: '/', ownDb: url }
  const mappings = readAdopted(adopted, { ...DEFAULT_POLICY, ...base }, defaults, mistakes)
  if (mistakes.length > 0) throw new Error(mistakes.join('\n'))
  const lines: string[] = []
  const stores: Store[] = []
  const another: AdoptedTestContext['openAnother'] = async (inFront = (own) => own) => {
    const own = inFront(await openStore(url, { connections: 2 }))
    const store = await withAdoptedTables(own, mappings, {
      address: url,
      log: (line) => lines.push(line),
    })
    stores.push(store)
    return store
  }
  const store = await another()
  return {
    store,
    operator: operatorContext(store, 'a test'),
    url,
    lines,
    mappings,
    openAnother: another,
    rows: (name) => readUserRows(url, fixtures[name]!.table),
    sql: (text) => runUserSql(url, text),
    async run(name, key) {
      const { items } = await store.runs({ limit: 200 })
      const found = items.find(
        ({ traits }) => traits.origin?.table === name && traits.origin.key === String(key),
      )
      if (!found) throw new Error(`there is no run of row ${key} of ${name}`)
      return found
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all(stores.map((one) => one.close()))
      await database[Symbol.asyncDispose]()
    },
  }
}

/** Puts methods in front of the statements of adopted tables. */
export function replaceAdopted(
  own: Store,
  methods: (adopted: AdoptedStore) => Partial<AdoptedStore>,
): Store {
  return {
    ...own,
    async extend(extension) {
      const opened = await own.extend(extension)
      return { ...opened, ...methods(opened as unknown as AdoptedStore) }
    },
  }
}

export async function openIntents(
  store: Store,
  olderThanMs = -60_000,
  limit = 5,
): Promise<Intent[]> {
  return (await store.extend(ADOPTED_STORE)).openIntents(olderThanMs, limit)
}
