import { hostname, userInfo } from 'node:os'
import process from 'node:process'

/** Returns the user of this process as the audit trail names it. */
export function currentUser(): string {
  try {
    return `${userInfo().username}@${hostname()}`
  } catch {
    // A user without a name, as in some containers.
    return `${process.getuid?.() ?? 'unknown'}@${hostname()}`
  }
}

export const PARENT_ENV = 'UNSTUCK_PARENT'

/** Returns true in a process started by `WorkerProcesses`. An IPC channel alone does not show that: process managers open one too. */
export function isWorkerProcess(): boolean {
  return process.env[PARENT_ENV] === String(process.ppid)
}
