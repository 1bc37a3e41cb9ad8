import { closeSync, mkdirSync, openSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { UnusableStoreError } from '../../model/errors.ts'
import { assertTrusted } from '../../host/trusted-path.ts'
import type { Store } from '../store.ts'
import { auditMethods } from './audit.ts'
import { beginMethods } from './begin.ts'
import { checkpointMethods } from './checkpoints.ts'
import { claimEndMethods } from './claim-ends.ts'
import { claimMethods } from './claims.ts'
import { HOST_CLOCK, StoreClock, type HostClock } from './clock.ts'
import { Connection, Database } from './database.ts'
import { isBusy, storeError } from './errors.ts'
import { sourceLockMethods } from './source-locks.ts'
import { listMethods } from './lists.ts'
import { liveRunMethods } from './live-runs.ts'
import { migrate } from './migrate.ts'
import { networkFileSystem } from './network-drive.ts'
import { fileId, OpenFiles } from './open-files.ts'
import { presenceMethods } from './presence.ts'
import { recoveryMethods } from './recovery.ts'
import { replanMethods } from './replan.ts'
import { revertMethods } from './revert.ts'
import { runListMethods } from './run-lists.ts'
import { runMoveMethods } from './run-moves.ts'
import { runMethods } from './runs.ts'
import { retentionMethods } from './retention.ts'
import { sampleMethods } from './samples.ts'
import { settleMethods } from './settle.ts'
import { workerMethods } from './workers.ts'

/** Opens the database file, making it when it is not there. */
export async function openSqlite(file: string, host: HostClock = HOST_CLOCK): Promise<Store> {
  const path = resolve(file)
  assertOwnFiles(path)
  const db = await openDatabase(path, host)
  try {
    await migrate(db)
    await db.startClock()
  } catch (error) {
    await db.close()
    throw storeError(error, path)
  }
  const lockFolder = `${path}-workers`
  return {
    engine: 'sqlite',
    location: path,
    warnings: [],
    unreadable: [],
    now: async () => db.now(),
    ...runMethods(db),
    ...runListMethods(db),
    ...liveRunMethods(db),
    ...settleMethods(db),
    ...claimMethods(db),
    ...beginMethods(db),
    ...checkpointMethods(db),
    ...claimEndMethods(db),
    ...listMethods(db),
    ...presenceMethods(lockFolder),
    ...workerMethods(db, lockFolder),
    ...sourceLockMethods(db),
    ...recoveryMethods(db),
    ...runMoveMethods(db),
    ...replanMethods(db),
    ...revertMethods(db),
    ...auditMethods(db),
    ...sampleMethods(db),
    ...retentionMethods(db),
    extend: async (extension) => (await extension.sqlite())(db),
    close: () => db.close(),
  }
}

/** The user named its folder, so the folder's owner is trusted, but no other user with write access. */
function assertOwnFiles(path: string): void {
  const within = dirname(path)
  for (const end of ['', '-wal', '-shm', '-journal', '-workers']) {
    assertTrusted(`${path}${end}`, 'a file of the database', { within })
  }
}

async function openDatabase(path: string, host: HostClock): Promise<Database> {
  try {
    const folder = dirname(path)
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const network = networkFileSystem(folder)
    if (network) {
      throw new UnusableStoreError(
        `${path} lies on a network file system (${network}), whose locks cannot prove that a worker is dead. ` +
          'Put the database on a local disk, or use PostgreSQL for workers on many machines.',
      )
    }
    create(path)
    return await openFiles(path, new StoreClock(host))
  } catch (error) {
    throw fileError(error, path) ?? storeError(error, path)
  }
}

/** Made here first, so that the database and its -wal file are for their owner's eyes only. */
function create(path: string): void {
  // SQLite would delete the -wal file of a database that it finds empty, and with it the newest pages.
  const walBytes = statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0
  if (walBytes > 0 && fileId(path) === null) {
    throw new UnusableStoreError(
      `The database file ${path} is missing, but its -wal file, which holds the newest pages, is there. Put the file ` +
        `back beside it; or, to begin with an empty database, delete ${path}-wal first.`,
    )
  }
  try {
    // Never opened when it is there: closing it would drop the locks that another thread of this process has on it.
    closeSync(openSync(path, 'wx', 0o600))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

const OPEN_TRIES = 5

async function openFiles(path: string, clock: StoreClock): Promise<Database> {
  for (let tries = 1; ; tries++) {
    const id = fileId(path)
    const writer = await connect(path, clock)
    const reader = await connect(path, clock)
    reader.exec('PRAGMA query_only = ON')
    const files = OpenFiles.of(path, id)
    if (files) return new Database(path, { writer, reader, clock, files })
    // Replaced in this very moment.
    reader.close()
    writer.close()
    if (tries === OPEN_TRIES) {
      throw new UnusableStoreError(
        `The database file ${path} is replaced by another one again and again while it is opened. ` +
          'Find the program that does it, and start again.',
      )
    }
  }
}

const CONNECT_TRIES = 200

async function connect(path: string, clock: StoreClock): Promise<Connection> {
  // Opened only if it is there: one that was deleted a moment ago is not made anew, empty.
  const existing = pathToFileURL(path)
  existing.search = 'mode=rw'
  const db = new DatabaseSync(existing, { timeout: 0 })
  for (let tries = 1; ; tries++) {
    try {
      db.exec('PRAGMA journal_mode = WAL')
      db.exec('PRAGMA synchronous = FULL')
      db.exec('PRAGMA cache_size = -16000')
      assertDurable(db, path)
      return new Connection(db, clock)
    } catch (error) {
      // The first to open a file after a crash repairs it; the others come back in a moment.
      if (!isBusy(error) || tries === CONNECT_TRIES) {
        db.close()
        throw error
      }
      await sleep(5 + Math.random() * 20)
    }
  }
}

/** A page that was acknowledged must survive a power cut, and older libraries can damage a shared WAL file. */
function assertDurable(db: DatabaseSync, path: string): void {
  const one = (text: string): unknown => Object.values(db.prepare(text).get() ?? {})[0]
  const mode = one('PRAGMA journal_mode')
  const synchronous = one('PRAGMA synchronous')
  if (mode !== 'wal' || synchronous !== 2) {
    throw new UnusableStoreError(
      `${path} cannot be used safely: journal mode ${String(mode)}, synchronous ${String(synchronous)}; ` +
        'WAL and FULL are needed. Put the database on a local disk.',
    )
  }
  const version = String(one('SELECT sqlite_version()'))
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number)
  if (major * 1_000_000 + minor * 1_000 + patch < 3_051_003) {
    throw new UnusableStoreError(
      `SQLite ${version} is too old: 3.51.3 is needed. Install a newer Node.`,
    )
  }
}

export function fileError(error: unknown, path: string): UnusableStoreError | null {
  const { code } = error as NodeJS.ErrnoException
  if (typeof code !== 'string' || code.startsWith('ERR_')) return null
  if (error instanceof UnusableStoreError) return error
  return new UnusableStoreError(
    `The database ${path} cannot be opened: ${(error as Error).message}. Check the path and its permissions.`,
    { cause: error },
  )
}
