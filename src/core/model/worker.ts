import type { WorkerId } from './id.ts'
import type { Millis } from './time.ts'

/** The identity of a worker process: names and pids alone are reused after a restart. */
export type ProcessIdentity = {
  readonly host: string
  readonly pid: number
  /** Kernel ticks at which the process started; null where the system does not report it (not Linux). */
  readonly startTicks: number | null
  /** The kernel's random id of this boot; null where there is none. */
  readonly bootId: string | null
  /** Pids mean something only inside one namespace (a container has its own). */
  readonly pidNamespace: string | null
}

/** What a worker holds that its death sets free. */
export type Presence =
  | { readonly kind: 'file'; readonly path: string; readonly inode: string }
  | { readonly kind: 'session'; readonly key: string }
  /** No lock: there is a connection pooler, or the engine has no locks. Only heartbeats count. */
  | { readonly kind: 'none' }

/** A process that claims targets. */
export type Worker = {
  readonly id: WorkerId
  readonly source: string
  readonly process: ProcessIdentity
  readonly presence: Presence
  readonly version: string
  readonly heartbeatMs: number
  /** How long others must wait in silence before they may take its targets. */
  readonly leaseMs: number
  readonly startedAt: Millis
  readonly lastHeartbeatAt: Millis
  /** Grows by one with each heartbeat: a verdict repeats it, so that it applies only while the silence lasts. */
  readonly heartbeats: number
  /** How long the worker's main thread had been busy without a break at the last heartbeat. */
  readonly loopLagMs: number
  /** Set when it ended, or was proven dead; a later beat takes it back. */
  readonly endedAt: Millis | null
}

/** What the store and the kernel report about a worker at one moment. */
export type Evidence = {
  /** Whether the worker's lock is held: `free` proves its death. */
  readonly presence: 'held' | 'free' | 'unknown'
  /** What kind of lock it is. */
  readonly presenceKind: 'file' | 'session' | 'none'
  /** Whether its process is in the process table of this host. */
  readonly process: 'alive' | 'gone' | 'unknown'
  /** Since its last heartbeat, by the store's clock. */
  readonly heartbeatAgeMs: number
  /** Time between two of its heartbeats. */
  readonly heartbeatMs: number
  /** Time without a heartbeat after which it loses its claims. */
  readonly leaseMs: number
  /** How far its event loop lagged behind at the last heartbeat. */
  readonly loopLagMs: number
  /** The host that it runs on. */
  readonly host: string
  /** Its process id. */
  readonly pid: number
  /** In place of process and host, for one that is known by a user's own table alone. */
  readonly label?: string
  /** Time since the server of its own database started: no heartbeat could arrive before. */
  readonly serverUpMs?: number
  /** Its row has never had a heartbeat. */
  readonly neverBeat?: boolean
  /** Its table has no heartbeat: `heartbeatAgeMs` is the time since its last activity, which proves no death. */
  readonly isActivity?: boolean
  /** Result of the user's `alive` function; `unanswered`: it failed or timed out. */
  readonly aliveCheck?: 'alive' | 'gone' | 'unanswered'
  /** Of a row in a table of your own: identifies its values when it was read. A verdict applies to them alone. */
  readonly rowHash?: string
}

/**
 * How long a worker may go without a heartbeat before a free session lock counts against it (5 s by default). It must
 * not claim either after that, until a heartbeat was accepted.
 */
export function sessionGraceMs({
  heartbeatMs,
  leaseMs,
}: Pick<Worker, 'heartbeatMs' | 'leaseMs'>): number {
  return Math.max(leaseMs / 3, 3 * heartbeatMs)
}

/** `gone`: proven dead. `silent`: no heartbeat for a lease. `stalled`: heartbeats, but no progress. */
export type Liveness = 'present' | 'gone' | 'silent' | 'stalled' | 'unknown'
