import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { randomUUID } from 'node:crypto'
import { basename, dirname, join } from 'node:path'
import process from 'node:process'
import { backup, DatabaseSync } from 'node:sqlite'
import { messageOf, UnusableStoreError, UsageError } from '../../../core/model/errors.ts'
import { openStore } from '../../../core/store/open.ts'
import { storeError } from '../../../core/store/sqlite/kit.ts'
import { INSPECTION_STORE, type Inspection } from './store.ts'

export type BackupRequest = {
  /** The database file. */
  readonly from: string
  readonly to: string
  /** Replaces a file that exists. */
  readonly force: boolean
  /** The schema is the one that this program knows, so that the data can be checked. */
  readonly isCurrent: boolean
  readonly onProgress: (copied: number, total: number) => void
}

export type Backup = {
  readonly bytes: number
  /** Of the copy; null: it has another schema. */
  readonly inspection: Inspection | null
}

/** Pages of 4 KB that are copied at a time. */
const PAGES_AT_ONCE = 1_000
const BUSY_MS = 10_000
const SQLITE_FULL = 13
/** The files of a database, by what comes after its name. */
const PARTS = ['', '-wal', '-shm', '-journal', '-workers']

/**
 * Copies a SQLite database that is in use into a file, as it is at one moment, and checks the copy. The file appears when the
 * copy is complete, checked and on the disk; no other user can read it.
 */
export async function backUpSqlite(request: BackupRequest): Promise<Backup> {
  const { from, to, force, isCurrent } = request
  assertWritable(from, to, force)
  const draft = join(dirname(to), `.${basename(to)}.${randomUUID().slice(0, 8)}.part`)
  try {
    closeSync(openSync(draft, 'wx', 0o600))
    await copy(request, draft)
    assertSound(draft)
    const inspection = isCurrent ? await inspect(draft) : null
    sync(draft)
    publish(draft, to, force)
    return { bytes: statSync(to).size, inspection }
  } catch (error) {
    throw toStoreError(error, request)
  } finally {
    for (const part of PARTS) rmSync(`${draft}${part}`, { recursive: true, force: true })
  }
}

function assertWritable(from: string, to: string, force: boolean): void {
  const folder = dirname(to)
  if (!existsSync(folder))
    throw new UsageError(`There is no folder ${folder} for the backup. Create it first.`)
  const real = join(realpathSync(folder), basename(to))
  const isPart = PARTS.some((part) => real === `${realpathSync(from)}${part}`)
  if (isPart || (existsSync(to) && sameFile(from, to)))
    throw new UsageError(`${to} is the database itself, or belongs to it. Name another file.`)
  if (statSync(to, { throwIfNoEntry: false })?.isDirectory())
    throw new UsageError(`${to} is a folder. Name the file of the backup.`)
  if (existsSync(to) && !force) throw alreadyThere(to)
  // SQLite would apply it to the copy.
  const foreign = ['-wal', '-journal'].find((part) => existsSync(`${to}${part}`))
  if (foreign !== undefined)
    throw new UsageError(
      `${to}${foreign} belongs to another database of this name, which may be in use. Delete it first, or name another file.`,
    )
}

function sameFile(one: string, other: string): boolean {
  const [a, b] = [statSync(one, { bigint: true }), statSync(other, { bigint: true })]
  return a.dev === b.dev && a.ino === b.ino
}

function alreadyThere(to: string): UsageError {
  return new UsageError(`${to} exists. Name another file, or replace it with --force.`)
}

async function copy({ from, onProgress }: BackupRequest, draft: string): Promise<void> {
  const db = new DatabaseSync(from, { readOnly: true, timeout: BUSY_MS })
  try {
    // A read transaction keeps one state of the database: else the copy would begin anew after each commit of a worker.
    db.exec('BEGIN')
    db.prepare('SELECT count(*) FROM sqlite_schema').get()
    await backup(db, draft, {
      rate: PAGES_AT_ONCE,
      progress: ({ totalPages, remainingPages }) =>
        onProgress(totalPages - remainingPages, totalPages),
    })
  } finally {
    db.close()
  }
}

function assertSound(path: string): void {
  const db = new DatabaseSync(path, { timeout: BUSY_MS })
  try {
    const found = db.prepare('PRAGMA integrity_check(5)').all()
    const faults = found.map((row) => String(row['integrity_check']))
    if (faults.join() === 'ok') return
    throw new UnusableStoreError(
      `The database is damaged, so no backup was made of it: ${faults.join('; ')}. ` +
        'Stop every process that uses it, keep all its files, and restore an earlier backup.',
    )
  } finally {
    db.close()
  }
}

async function inspect(path: string): Promise<Inspection> {
  const store = await openStore(`sqlite:${path}`)
  try {
    return await (await store.extend(INSPECTION_STORE)).inspect()
  } finally {
    await store.close()
  }
}

function sync(path: string): void {
  const fd = openSync(path, 'r+')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

/** Gives the draft its name, which another process may have taken meanwhile. */
function publish(draft: string, to: string, force: boolean): void {
  if (force) {
    renameSync(draft, to)
  } else {
    try {
      linkSync(draft, to)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'EEXIST' || existsSync(to)) throw alreadyThere(to)
      // A file system without hard links.
      renameSync(draft, to)
    }
  }
  if (process.platform === 'win32') return
  const folder = openSync(dirname(to), 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}

/** Errors of the copy are about its own file, those of SQLite about the database, except for a full disk. */
function toStoreError(error: unknown, { from, to }: BackupRequest): unknown {
  const { code, errcode = 0 } = error as NodeJS.ErrnoException & { errcode?: number }
  const isOfFile = /^E(?!RR_)[A-Z0-9]+$/.test(String(code)) || (errcode & 0xff) === SQLITE_FULL
  if (!isOfFile) return storeError(error, from)
  return new UnusableStoreError(`The backup ${to} cannot be written: ${messageOf(error)}`, {
    cause: error,
  })
}
