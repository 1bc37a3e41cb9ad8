import { statSync } from 'node:fs'
import { sql, type Database } from './database.ts'

export type BlockedWal = {
  readonly bytes: number
  /** In the file, and of these those that cannot be copied back into the database. */
  readonly pages: number
  readonly left: number
}

/** Copies back what it can, without waiting for readers. */
const CHECKPOINT = sql('wal:checkpoint')`PRAGMA wal_checkpoint(PASSIVE)`
/** SQLite copies back after every thousand pages. Five times as many are left only if it cannot. */
const BLOCKED_PAGES = 5_000
const PAGE_BYTES_MIN = 4_096

/**
 * Returns how much of the -wal file cannot be copied back into the database, because another program keeps a read open;
 * null while that is not so. Reads only the size of the file while it is small.
 */
export function blockedWal(db: Database): BlockedWal | null {
  const bytes = statSync(`${db.location}-wal`, { throwIfNoEntry: false })?.size ?? 0
  if (bytes < BLOCKED_PAGES * PAGE_BYTES_MIN) return null
  const { log, checkpointed } = db.read((tx) =>
    tx.get<{ log: number; checkpointed: number }>(CHECKPOINT)!,
  )
  return log - checkpointed < BLOCKED_PAGES ? null : { bytes, pages: log, left: log - checkpointed }
}

const CHECK_EVERY_MS = 5_000

/** Returns a function that returns the warning about a blocked -wal file, or null; it checks every few seconds. */
export function watchWal(db: Database): () => string | null {
  let lookedAt = -Infinity
  let warning: string | null = null
  return () => {
    if (performance.now() - lookedAt < CHECK_EVERY_MS) return warning
    lookedAt = performance.now()
    warning = blockedWal(db)
      ? `The file ${db.location}-wal only grows: another program keeps a read transaction open, so it cannot be copied back ` +
        `into the database. Close it (\`fuser -v ${db.location}\` names it); \`unstuck doctor\` tells how much is left.`
      : null
    return warning
  }
}
