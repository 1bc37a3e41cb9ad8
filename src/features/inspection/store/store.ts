import type { RunId, TargetId, WorkerId } from '../../../core/model/id.ts'
import { isLive, type RunStatus } from '../../../core/model/run.ts'
import { TARGET_STATUSES, type TargetStatus } from '../../../core/model/target.ts'
import type { BlockedWal } from '../../../core/store/sqlite/kit.ts'
import { toCounts, type CountersRow } from '../../../core/store/rows.ts'
import type { StoreExtension } from '../../../core/store/store.ts'

/** The state of the data against the guarantees. Lists are cut after the first hundred. */
export type Inspection = {
  /** Settings of the store's own connections that decide whether an acknowledged page survives a power cut. */
  readonly durability: Readonly<Record<string, string>>
  readonly counters: CounterCheck
  /** Sources with more than one live run. */
  readonly duplicateLiveRuns: readonly {
    readonly source: string
    readonly runs: readonly RunId[]
  }[]
  /** Claims in live runs without a living worker. */
  readonly invalidClaims: readonly InvalidClaim[]
  /** Runs that ended at no time. */
  readonly withoutEndTime: readonly { readonly run: RunId; readonly source: string }[]
  /** Lock files that no worker needs any more. Only SQLite has any. */
  readonly leftoverLocks: readonly LeftoverLock[]
  /** A -wal file that only grows; null while it does not. Only SQLite has one. */
  readonly blockedWal: BlockedWal | null
}

export type CounterCheck = {
  /** Runs whose targets were counted: live ones and the newest others. */
  readonly checked: number
  /** Runs that were not counted, so that the inspection ends soon. */
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

/** Checks the data against the guarantees, for `doctor` and `chaos`. */
export interface InspectionStore {
  /** Expensive: not for loops. */
  inspect(): Promise<Inspection>
}

export const INSPECTION_STORE: StoreExtension<InspectionStore> = {
  sqlite: async () => (await import('./sqlite.ts')).inspectMethods,
  postgres: async () => (await import('./postgres.ts')).inspectMethods,
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
  /** According to the counters. */
  targets: number
}

/** The counters of a run and a count of its rows, from one snapshot. */
export type CounterCheckRow = CountersRow & { counted: Readonly<Record<string, number>> | null }

/** Counts the targets of as many runs as the limit allows. Returns the counters that differ. */
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
