import type { RunId, TargetId, WorkerId } from '../model/id.ts'
import { isLive, type RunStatus } from '../model/run.ts'
import { TARGET_STATUSES, type TargetStatus } from '../model/target.ts'
import { toCounts, type CountersRow } from './rows.ts'

/** A database seen from outside: nothing is made, migrated or written for this look. */
export type DatabaseInfo = {
  /** Without secrets. */
  readonly where: string
  /** Of the schema; 0 while nothing of ours is in it. */
  readonly version: number
  /** The version that this program knows. */
  readonly known: number
  /** The migrations between the two, in the order they will be applied. */
  readonly pending: readonly string[]
  /** Null where there is no database yet. */
  readonly engine: EngineFacts | null
}

export type EngineFacts = SqliteFacts | PostgresFacts

export type SqliteFacts = {
  readonly name: 'sqlite'
  readonly path: string
  /** How long it took to open and read it. */
  readonly roundTripMs: number
  /** As the file has it, before a store opens it. */
  readonly journalMode: string
  /** Why file or folder cannot be written to, in the system's words; null when they can. */
  readonly readOnly: string | null
  /** The network file system it lies on, if it does. */
  readonly network: string | null
  readonly bytes: number
  readonly walBytes: number
}

export type PostgresFacts = {
  readonly name: 'postgres'
  readonly serverVersion: string
  readonly roundTripMs: number
  /** The server's clock less this host's. Right to half a round trip. */
  readonly clockAheadMs: number
  readonly pooled: boolean
  readonly inRecovery: boolean
  readonly readOnly: boolean
  /** The login may write to our tables, or make them where there are none. */
  readonly mayWrite: boolean
  /** As a new session finds them; null where a compatible engine has no such setting. */
  readonly synchronousCommit: string | null
  readonly fsync: string | null
  readonly fullPageWrites: string | null
  /** Whichever is nearer to its end: the server's connections, or this database's. Null where it is not told. */
  readonly connections: ConnectionFacts | null
  /** Connections that a worker process opens from this address, at most. */
  readonly perWorker: number
  readonly bytes: number | null
}

export type ConnectionFacts = {
  /** For logins without special rights. */
  readonly max: number
  readonly used: number
  /** Those of `used` that are connections of Unstuck, as far as this login sees. */
  readonly own: number
}

/** What the data shows of the promises. Lists are cut after the first hundred. */
export type Inspection = {
  /** Settings of the store's own connections that decide whether an acknowledged page survives a power cut. */
  readonly durability: Readonly<Record<string, string>>
  readonly counters: CounterCheck
  /** Sources with more than one live run. */
  readonly duplicateLiveRuns: readonly {
    readonly source: string
    readonly runs: readonly RunId[]
  }[]
  /** Claims in live runs that nobody can be held to. */
  readonly invalidClaims: readonly InvalidClaim[]
  /** Runs that ended at no time. */
  readonly withoutEndTime: readonly { readonly run: RunId; readonly source: string }[]
  /** Lock files that no worker needs any more. Only SQLite has any. */
  readonly leftoverLocks: readonly LeftoverLock[]
  /** A -wal file that only grows; null while it does not. Only SQLite has one. */
  readonly blockedWal: BlockedWal | null
}

export type BlockedWal = {
  readonly bytes: number
  /** In the file, and of these those that cannot be copied back into the database. */
  readonly pages: number
  readonly left: number
}

export type CounterCheck = {
  /** Runs whose targets were counted: live ones and the newest others. */
  readonly checked: number
  /** Runs that were not, so that a look stays a look. */
  readonly unchecked: number
  readonly mismatches: readonly CounterMismatch[]
}

export type CounterMismatch = {
  readonly run: RunId
  readonly source: string
  readonly status: TargetStatus
  readonly recorded: number
  readonly counted: number
}

export type InvalidClaim = {
  readonly target: TargetId
  readonly run: RunId
  readonly source: string
  readonly worker: WorkerId | null
  readonly fault: 'no-epoch' | 'worker-unknown' | 'worker-ended'
}

export type LeftoverLock = {
  readonly path: string
  readonly fault: 'worker-unknown' | 'worker-ended'
}

export const LISTED_MAX = 100
export const LIVE_RUNS_MAX = 500
export const NEWEST_RUNS_MAX = 50
/** Counting a million of them takes about a second. */
const TARGETS_MAX = 2_000_000

/** A run that an engine proposes for inspection. */
export type InspectedRun = {
  id: RunId
  source: string
  status: RunStatus
  finished_at: number | null
  /** By the books. */
  targets: number
}

/** The books of one run and a count of its rows, seen in one snapshot. */
export type CounterCheckRow = CountersRow & { counted: Readonly<Record<string, number>> | null }

/** Counts the targets of as many runs as a look may take, and names what does not agree. */
export async function checkCounters(
  runs: readonly InspectedRun[],
  count: (run: RunId) => Promise<CounterCheckRow>,
): Promise<CounterCheck> {
  const wrong: CounterMismatch[] = []
  let [checked, targets] = [0, 0]
  for (const run of runs) {
    if (targets + run.targets > TARGETS_MAX) continue
    targets += run.targets
    checked++
    wrong.push(...mismatchesOf(run, await count(run.id)))
  }
  return { checked, unchecked: runs.length - checked, mismatches: wrong.slice(0, LISTED_MAX) }
}

function mismatchesOf({ id: run, source }: InspectedRun, row: CounterCheckRow): CounterMismatch[] {
  const recorded = toCounts(row).targets
  return TARGET_STATUSES.map((status) => ({
    run,
    source,
    status,
    recorded: recorded[status],
    counted: row.counted?.[status] ?? 0,
  })).filter(({ recorded, counted }) => recorded !== counted)
}

export function runsWithoutEndTime(runs: readonly InspectedRun[]): Inspection['withoutEndTime'] {
  return runs
    .filter(({ status, finished_at }) => !isLive(status) && finished_at === null)
    .map(({ id, source }) => ({ run: id, source }))
}
