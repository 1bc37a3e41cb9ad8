import process from 'node:process'
import type { Database, ResolvedAddress } from '../contracts/database.ts'
import type { StoreHost } from '../contracts/feature.ts'
import type { Settings } from '../contracts/settings.ts'
import { NotFoundError, StoreUnavailableError } from '../core/model/errors.ts'
import { EXIT } from '../core/model/exit-codes.ts'
import { formatDuration, humanizeDuration } from '../core/model/time.ts'
import { redact } from '../core/model/redact.ts'
import { openStore, withRetry, type OpenOptions } from '../core/store/open.ts'
import type { Store } from '../core/store/store.ts'
import { FEATURES } from '../features/index.ts'
import { databaseExists } from '../lib/files/config-file.ts'

/** Opens a store with the runs that features add to it. */
export async function openAll(host: StoreHost, options?: OpenOptions): Promise<Store> {
  return addFeatureRuns(await openStore(host.address, options), host)
}

/** Returns the store with the runs that features add to it. */
export async function addFeatureRuns(own: Store, host: StoreHost): Promise<Store> {
  let store = own
  for (const { wrapStore } of FEATURES) if (wrapStore) store = await wrapStore(store, host)
  return store
}

type DatabaseOptions = {
  readonly locate: () => Promise<ResolvedAddress>
  readonly settings: () => Promise<Settings>
  /** Receives errors of the user's own tables. */
  readonly log: (line: string) => void
}

export function makeDatabase({ locate, settings, log }: DatabaseOptions): Database {
  let located: Promise<ResolvedAddress> | undefined
  let own: Promise<Store> | undefined
  let all: { readonly own: Store; readonly store: Promise<Store> } | undefined

  const database: Database = {
    locate: () => (located ??= locate()),
    address: async () => (await database.locate()).address,
    where: async () => redact(await database.address()),
    open: (options) => {
      own ??= database
        .address()
        .then((address) => openStore(address, options))
        .catch((error: unknown) => {
          // The next call tries again.
          own = undefined
          throw error
        })
      return own
    },
    openWithin: (limitMs, log) => openWithin(() => database.open({ connections: 1 }), limitMs, log),
    async openAll(options) {
      const opened = await database.open(options)
      const host = { settings: await settings(), address: await database.address(), log }
      if (all?.own !== opened) {
        const store = addFeatureRuns(opened, host)
        all = { own: opened, store }
        store.catch(() => (all = undefined))
      }
      return all.store
    },
    async openIfExists() {
      const exists =
        databaseExists(await database.address()) || (await settings()).tables.length > 0
      return exists ? database.openAll() : null
    },
    async openExisting() {
      const found = await database.openIfExists()
      if (found) return found
      throw new NotFoundError(
        `database at ${await database.where()} yet`,
        'Nothing has run there so far. Start with `unstuck demo` or `unstuck work crawl.ts`, or name it with --db.',
      )
    },
    async close() {
      const opened = (await all?.store) ?? (await own)
      own = all = undefined
      await opened?.close()
    },
  }
  return database
}

/** Calls `open` until the database answers, up to the limit of `--db-timeout`. */
async function openWithin(
  open: () => Promise<Store>,
  limitMs: number,
  log: (line: string) => void,
): Promise<Store> {
  const startedAt = performance.now()
  const elapsed = (): string => humanizeDuration(performance.now() - startedAt)
  const limit = AbortSignal.timeout(limitMs)
  let attempts = 0
  let last: StoreUnavailableError | undefined
  const tryOpen = (): Promise<Store> => {
    attempts++
    return open().catch((error: unknown) => {
      if (error instanceof StoreUnavailableError) last = error
      throw error
    })
  }
  const onError = (error: StoreUnavailableError): void => {
    if (attempts === 1)
      log(`waiting up to ${formatDuration(limitMs)} for the database: ${error.message}`)
  }
  const onSignal = (signal: NodeJS.Signals): void => {
    log(`${signal} before the database answered: nothing was started`)
    process.exit(EXIT.resumable)
  }
  process.once('SIGTERM', onSignal).once('SIGINT', onSignal)
  try {
    const store = await withRetry(tryOpen, limit, onError)
    if (attempts > 1) log(`the database answers, after ${elapsed()}`)
    return store
  } catch (error) {
    if (!last || error !== limit.reason) throw error
    throw new StoreUnavailableError(
      `${last.message} Tried ${attempts === 1 ? 'once' : `${attempts} times in ${elapsed()}`}; \`--db-timeout\` sets how long the start waits for it.`,
      { cause: last },
    )
  } finally {
    process.off('SIGTERM', onSignal).off('SIGINT', onSignal)
  }
}
