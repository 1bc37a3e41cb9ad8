import { accessSync, constants, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { messageOf, UnusableStoreError } from '../../../core/model/errors.ts'
import { pendingAfter } from '../../../core/store/schema-version.ts'
import {
  Connection,
  fileError,
  foundVersion,
  MIGRATIONS,
  networkFileSystem,
  SCHEMA_VERSION,
  sql,
  storeError,
} from '../../../core/store/sqlite/kit.ts'
import type { DatabaseInfo } from './database-info.ts'

const JOURNAL_MODE = sql('info:journal')`PRAGMA journal_mode`
/** The first process to open a file after a crash repairs it; others wait. */
const BUSY_MS = 2_000

/** Reads the file without creating, migrating or changing it. */
export function readSqliteInfo(file: string): DatabaseInfo {
  const path = resolve(file)
  try {
    const stat = statSync(path, { throwIfNoEntry: false })
    if (!stat) return { ...schemaOf(path, 0), engine: null }
    if (!stat.isFile()) {
      throw new UnusableStoreError(
        `${path} is not a file. Name the database file itself with --db.`,
      )
    }
    const startedAt = performance.now()
    const { number, journalMode } = readHead(path)
    return {
      ...schemaOf(path, number),
      engine: {
        name: 'sqlite',
        path,
        roundTripMs: performance.now() - startedAt,
        journalMode,
        readOnly: whyReadOnly(path),
        network: networkFileSystem(dirname(path)),
        bytes: stat.size,
        walBytes: statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0,
      },
    }
  } catch (error) {
    throw fileError(error, path) ?? storeError(error, path)
  }
}

function schemaOf(where: string, number: number): Omit<DatabaseInfo, 'engine'> {
  return {
    where,
    version: number,
    known: SCHEMA_VERSION,
    pending: pendingAfter(number, MIGRATIONS),
  }
}

function readHead(path: string): { number: number; journalMode: string } {
  const connection = new Connection(new DatabaseSync(path, { readOnly: true, timeout: BUSY_MS }))
  try {
    const number = foundVersion(connection)
    const { journal_mode } = connection.get<{ journal_mode: string }>(JOURNAL_MODE)!
    return { number, journalMode: journal_mode }
  } finally {
    connection.close()
  }
}

function whyReadOnly(path: string): string | null {
  try {
    // The folder too: SQLite creates the -wal file beside the database.
    for (const needed of [path, dirname(path)]) accessSync(needed, constants.W_OK)
    return null
  } catch (error) {
    return messageOf(error)
  }
}
