import { closeSync, mkdirSync, openSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { WorkerId } from '../../model/id.ts'
import type { Evidence, Presence, ProcessIdentity } from '../../model/worker.ts'
import { assertTrusted } from '../../host/trusted-path.ts'
import { bootId, thisProcess } from '../../host/identity.ts'
import type { PresenceLock, Store } from '../store.ts'
import { isBusy } from './errors.ts'
import { fileId } from './open-files.ts'

/**
 * A worker's lock file: a small SQLite database held in an exclusive transaction. The kernel frees it when the
 * process ends, however it ends, in any container on the host.
 */
export function presenceMethods(folder: string): Pick<Store, 'acquirePresence'> {
  return { acquirePresence: async (worker) => acquirePresence(folder, worker) }
}

function acquirePresence(folder: string, worker: WorkerId): PresenceLock {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  assertTrusted(folder, 'lock folder', { within: dirname(folder) })
  const path = lockPath(folder, worker)
  closeSync(openSync(path, 'a', 0o600))
  const lock = new DatabaseSync(path, { timeout: 0 })
  // No journal beside it: a killed worker would leave that behind.
  lock.exec('PRAGMA journal_mode = MEMORY')
  lock.exec('BEGIN EXCLUSIVE')
  // From here on nothing in this process may open the file: closing any descriptor of it would drop the lock.
  const presence: Presence = { kind: 'file', path: lockName(worker), inode: fileId(path)! }
  return {
    presence,
    release: async () => {
      if (!lock.isOpen) return
      lock.close()
      rmSync(path, { force: true })
    },
  }
}

/** Whether the holder of a lock file lives. Never creates a file, and doubts whatever is not plain. */
export function probePresence(
  folder: string,
  presence: Presence,
  holder: ProcessIdentity,
): Evidence['presence'] {
  if (presence.kind !== 'file') return 'unknown'
  if (holder.bootId !== bootId()) return 'unknown'
  if (isThisProcess(holder)) return 'held'
  const path = join(folder, presence.path)
  if (fileId(path) !== presence.inode) return 'unknown'
  let lock: DatabaseSync | undefined
  try {
    lock = new DatabaseSync(path, { readOnly: true, timeout: 0 })
    lock.exec('SELECT count(*) FROM sqlite_schema')
    return 'free'
  } catch (error) {
    return isBusy(error) ? 'held' : 'unknown'
  } finally {
    lock?.close()
  }
}

/** Removes the lock file of a worker that has ended. */
export function removeLock(folder: string, worker: WorkerId): void {
  rmSync(lockPath(folder, worker), { force: true })
}

let self: ProcessIdentity | undefined

function isThisProcess(other: ProcessIdentity): boolean {
  self ??= thisProcess()
  return (
    other.pid === self.pid &&
    other.startTicks === self.startTicks &&
    other.pidNamespace === self.pidNamespace
  )
}

function lockPath(folder: string, worker: WorkerId): string {
  return join(folder, lockName(worker))
}

function lockName(worker: WorkerId): string {
  return `${worker}.lock`
}
