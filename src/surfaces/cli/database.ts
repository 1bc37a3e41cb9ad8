import { NotFound } from '../../model/errors.ts'
import { redact } from '../../observe/redact.ts'
import { isDatabaseThere } from '../../runtime/config-file.ts'
import { openStore, type OpenOptions } from '../../store/open.ts'
import type { Store } from '../../store/store.ts'
import type { Located } from '../address.ts'

/** The way to the store: opened when first asked for, closed by the frame when the command has ended. */
export type Database = {
  /** The address and who named it. */
  locate(): Promise<Located>
  address(): Promise<string>
  /** The address as people may see it. */
  where(): Promise<string>
  /** For commands that write: makes it where there is none. */
  open(options?: OpenOptions): Promise<Store>
  /** For commands that look: null where nothing ever ran, and nothing is made. */
  openIfAny(): Promise<Store | null>
  /** For commands that look for something by name: refuses where nothing ever ran. */
  openExisting(): Promise<Store>
  close(): Promise<void>
}

export function makeDatabase(findAddress: () => Promise<Located>): Database {
  let located: Promise<Located> | undefined
  let store: Promise<Store> | undefined

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
    openIfAny: async () => (isDatabaseThere(await database.address()) ? database.open() : null),
    async openExisting() {
      const found = await database.openIfAny()
      if (found) return found
      throw new NotFound(
        `database at ${await database.where()} yet`,
        'Nothing has run there so far. Start with `unstuck demo` or `unstuck work crawl.ts`, or say where it is with --db.',
      )
    },
    async close() {
      const open = store
      store = undefined
      await (await open)?.close()
    },
  }
  return database
}
