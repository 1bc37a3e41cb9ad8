import { withAdoptedTables } from '../features/adopted/adopted-store.ts'
import { NotFoundError } from '../core/model/errors.ts'
import { redact } from '../core/model/redact.ts'
import { databaseExists } from '../lib/files/config-file.ts'
import { openStore, type OpenOptions } from '../core/store/open.ts'
import type { Store } from '../core/store/store.ts'
import type { ResolvedAddress } from './address.ts'
import type { Settings } from './config.ts'

/** The way to the store: opened when first asked for, closed by the frame when the command has ended. */
export type Database = {
  /** The address and who named it. */
  locate(): Promise<ResolvedAddress>
  address(): Promise<string>
  /** The address as people may see it. */
  where(): Promise<string>
  /** For commands that work: makes it where there is none. Knows nothing of users' own tables. */
  open(options?: OpenOptions): Promise<Store>
  /** The same with the rows of users' own tables, which are runs there. */
  openWithAdopted(options?: OpenOptions): Promise<Store>
  /** For commands that look: null where nothing ever ran and no table is adopted; then nothing is made. */
  openIfExists(): Promise<Store | null>
  /** For commands that look for something by name: refuses where nothing ever ran. */
  openExisting(): Promise<Store>
  close(): Promise<void>
}

type DatabaseDependencies = {
  /** Tables of the user's own, and by what their rows are judged. */
  readonly settings: () => Promise<Pick<Settings, 'adopted' | 'policyOf'>>
  /** Hears what is wrong with them. */
  readonly log: (line: string) => void
}

export function makeDatabase(
  findAddress: () => Promise<ResolvedAddress>,
  { settings, log }: DatabaseDependencies,
): Database {
  let located: Promise<ResolvedAddress> | undefined
  let store: Promise<Store> | undefined
  let all: { readonly own: Store; readonly store: Store } | undefined

  const database: Database = {
    locate: () => (located ??= findAddress()),
    address: async () => (await database.locate()).address,
    where: async () => redact(await database.address()),
    open: (options) => {
      store ??= database
        .address()
        .then((found) => openStore(found, options))
        .catch((error: unknown) => {
          // It may be there when it is asked for again.
          store = undefined
          throw error
        })
      return store
    },
    async openWithAdopted(options) {
      const own = await database.open(options)
      const { adopted, policyOf } = await settings()
      const address = await database.address()
      if (all?.own !== own)
        all = { own, store: await withAdoptedTables(own, adopted, { address, log, policyOf }) }
      return all.store
    },
    async openIfExists() {
      const isAny =
        databaseExists(await database.address()) || (await settings()).adopted.length > 0
      return isAny ? database.openWithAdopted() : null
    },
    async openExisting() {
      const found = await database.openIfExists()
      if (found) return found
      throw new NotFoundError(
        `database at ${await database.where()} yet`,
        'Nothing has run there so far. Start with `unstuck demo` or `unstuck work crawl.ts`, or say where it is with --db.',
      )
    },
    async close() {
      const own = await store
      const withAdopted = all
      store = all = undefined
      await (withAdopted?.store ?? own)?.close()
    },
  }
  return database
}
