import { closeSync, mkdirSync, openSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { UnusableStore } from '../../model/errors.ts'
import { assertTrusted } from '../../host/trusted-path.ts'
import type { Store } from '../store.ts'
import { adoptedMemoryVerbs } from './adopted-memory.ts'
import { alertVerbs } from './alerts.ts'
import { auditVerbs } from './audit.ts'
import { beginVerbs } from './begin.ts'
import { checkpointVerbs } from './checkpoints.ts'
import { claimEndVerbs } from './claim-ends.ts'
import { claimVerbs } from './claims.ts'
import { HOST_CLOCK, StoreClock, type HostClock } from './clock.ts'
import { Connection, Database } from './database.ts'
import { isBusy, storeError } from './errors.ts'
import { executionVerbs } from './executions.ts'
import { guardVerbs } from './source-locks.ts'
import { inspectVerbs } from './inspect.ts'
import { listVerbs } from './lists.ts'
import { liveRunVerbs } from './live-runs.ts'
import { migrate } from './migrate.ts'
import { networkFileSystem } from './network-drive.ts'
import { fileId, OpenFiles } from './open-files.ts'
import { operationVerbs } from './operations.ts'
import { presenceVerbs } from './presence.ts'
import { recoveryVerbs } from './recovery.ts'
import { replanVerbs } from './replan.ts'
import { revertVerbs } from './revert.ts'
import { runListVerbs } from './run-lists.ts'
import { runMoveVerbs } from './run-moves.ts'
import { runVerbs } from './runs.ts'
import { retentionVerbs } from './retention.ts'
import { sampleVerbs } from './samples.ts'
import { sessionVerbs } from './sessions.ts'
import { settleVerbs } from './settle.ts'
import { storageVerbs } from './storages.ts'
import { totalVerbs } from './totals.ts'
import { deadLetterVerbs } from './dead-letters.ts'
import { workerVerbs } from './workers.ts'

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
    where: path,
    remarks: [],
    away: [],
    now: async () => db.now(),
    ...runVerbs(db),
    ...runListVerbs(db),
    ...liveRunVerbs(db),
    ...settleVerbs(db),
    ...claimVerbs(db),
    ...beginVerbs(db),
    ...checkpointVerbs(db),
    ...claimEndVerbs(db),
    ...listVerbs(db),
    ...presenceVerbs(lockFolder),
    ...workerVerbs(db, lockFolder),
    ...guardVerbs(db),
    ...executionVerbs(db),
    ...recoveryVerbs(db),
    ...runMoveVerbs(db),
    ...replanVerbs(db),
    ...revertVerbs(db),
    ...auditVerbs(db),
    ...totalVerbs(db),
    ...deadLetterVerbs(db),
    ...sampleVerbs(db),
    ...retentionVerbs(db),
    ...alertVerbs(db),
    ...operationVerbs(db),
    ...sessionVerbs(db),
    ...adoptedMemoryVerbs(db),
    ...storageVerbs(db),
    ...inspectVerbs(db, lockFolder),
    close: () => db.close(),
  }
}

/** Its folder was named, so the folder's owner is trusted, but no other user who can put a file there. */
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
      throw new UnusableStore(
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
    throw new UnusableStore(
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
      throw new UnusableStore(
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
    throw new UnusableStore(
      `${path} cannot be used safely: journal mode ${String(mode)}, synchronous ${String(synchronous)}; ` +
        'WAL and FULL are needed. Put the database on a local disk.',
    )
  }
  const version = String(one('SELECT sqlite_version()'))
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number)
  if (major * 1_000_000 + minor * 1_000 + patch < 3_051_003) {
    throw new UnusableStore(`SQLite ${version} is too old: 3.51.3 is needed. Install a newer Node.`)
  }
}

export function fileError(error: unknown, path: string): UnusableStore | null {
  const { code } = error as NodeJS.ErrnoException
  if (typeof code !== 'string' || code.startsWith('ERR_')) return null
  if (error instanceof UnusableStore) return error
  return new UnusableStore(
    `The database ${path} cannot be opened: ${(error as Error).message}. Check the path and its permissions.`,
    { cause: error },
  )
}
