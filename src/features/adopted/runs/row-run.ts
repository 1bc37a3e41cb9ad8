import type { Policy } from '../../../core/model/policy.ts'
import type { WorkerId } from '../../../core/model/id.ts'
import { type Counts, type Run, type RunStatus } from '../../../core/model/run.ts'
import { sourceMistake } from '../../../lib/validate/source.ts'
import { TARGET_STATUSES, type Target, type TargetStatus } from '../../../core/model/target.ts'
import type { Millis } from '../../../core/model/time.ts'
import type { WorkerObservation } from '../../../core/store/store.ts'
import { adoptedId, TABLE_RUN_KEY } from '../ids.ts'
import type { Mapping } from '../mapping.ts'
import type { TimeField } from '../table/columns.ts'
import type { AdoptedRow, AdoptedTable, RowCount } from '../table/table.ts'
import type { CallbackResults } from './callbacks.ts'
import { sanitizeLine } from '../sanitize-line.ts'
import { observe } from './observe.ts'
import { latestOf } from './times.ts'
import {
  isActive,
  isMapped,
  isOpen,
  rowTraits,
  runStatusOf,
  targetStatusOf,
  unmappedTraits,
} from './status-mapping.ts'

/** Facts about a row that are not in the row itself. */
export type RowFacts = {
  /** By the clock of the row's database. */
  readonly now: Millis
  /** Null on SQLite. */
  readonly serverStartedAt: Millis | null
  readonly callbackResults: CallbackResults
  readonly reopened: Reopened | null
  /** When an operator acknowledged the row as it is. */
  readonly acknowledgedAt?: Millis | null | undefined
  /** The policy of a run; default: the policy of its table. */
  readonly policyOf?: ((run: Run) => Policy) | undefined
}

/** When an operator reopened the row, and its status then. */
export type Reopened = { readonly at: Millis; readonly status: string | null }

/** A row as a run with its target, or as a target with its run, and its worker. */
export type ResolvedRow = {
  readonly table: AdoptedTable
  readonly row: AdoptedRow
  /** When the row was read, by the clock of its database. */
  readonly now: Millis
  readonly run: Run
  readonly target: Target
  /** Null: no worker is known, or an operator reopened the row. */
  readonly observation: WorkerObservation | null
  /** Since an operator reopened it, it has an owner again or has changed. */
  readonly hasMoved: boolean
}

/** Resolves a row: as a run with its one target, or as a target of the run of its whole table. */
export function resolveRow(
  table: AdoptedTable,
  row: AdoptedRow,
  tableRun: Run | null,
  facts: RowFacts,
): ResolvedRow {
  const { mapping } = table
  const { now, reopened, policyOf } = facts
  const ids = idsOf(mapping, row)
  const hasMoved = hasMovedSince(mapping, row, facts)
  const reopenedAt = hasMoved ? null : (reopened?.at ?? null)
  const unclaimed = tableRun ?? toRun(mapping, row, { ...facts, reopenedAt })
  const run = policyOf
    ? { ...unclaimed, policy: effectivePolicy(mapping, policyOf(unclaimed)) }
    : unclaimed
  const observation =
    isActive(mapping, row) && reopenedAt === null
      ? observe(row, { mapping, run, ids, ...facts })
      : null
  const worker = observation?.worker.id ?? null
  return {
    table,
    row,
    now,
    run: tableRun
      ? run
      : { ...run, owner: worker, ...(observation && { ownerProcess: observation.worker.process }) },
    target: toTarget(row, { mapping, run, worker, ...facts }),
    observation,
    hasMoved,
  }
}

function toRun(
  mapping: Mapping,
  row: AdoptedRow,
  { now, callbackResults, reopenedAt, acknowledgedAt = null }: RowFacts & Pick<Run, 'reopenedAt'>,
): Run {
  const status = runStatusOf(mapping, row)
  const lastActivityAt = lastActivityOf(mapping, row, callbackResults)
  const oldest = oldestTimeOf(row) ?? lastActivityAt
  const createdAt = oldest ?? now
  const traits = isMapped(mapping, row)
    ? rowTraits(mapping, row.key)
    : unmappedTraits(mapping, row.key, row.status)
  return {
    id: idsOf(mapping, row).run,
    source: sourceOf(mapping, row),
    kind: 'single',
    status,
    createdAt,
    startedAt: status === 'queued' ? null : oldest,
    resumedAt: null,
    reopenedAt,
    plannedAt: createdAt,
    finishedAt: row.finishedAt,
    acknowledgedAt,
    paused: null,
    lastActivityAt: lastActivityAt ?? createdAt,
    counts: {
      ...rowCounts({ [targetStatusOf(mapping, row)]: 1 }),
      pages: row.target.page,
      itemsNew: row.extracted,
      skipped: row.skipped,
    },
    progress: rowProgress(row),
    resumes: 0,
    retries: 0,
    retryOf: null,
    error: row.error,
    input: null,
    // A checkpoint and output files count as artifacts.
    artifacts: Number(hasCheckpoint(row, callbackResults)) + Number(callbackResults.hasOutput),
    owner: null,
    policy: effectivePolicy(mapping, mapping.policy),
    traits: { ...traits, isUndated: oldest === null },
  }
}

/** Returns the one run of a table of targets. `rows`: those in progress, the last started first; if there is none, the last active ones. */
export function toTableRun(
  mapping: Mapping,
  counts: readonly Omit<RowCount, 'group'>[],
  rows: readonly AdoptedRow[],
  now: Millis,
): Run {
  const targets = rowCounts(countByTargetStatus(mapping, counts)).targets
  const open = targets.planned + targets.in_progress
  const all = TARGET_STATUSES.reduce((sum, status) => sum + targets[status], 0)
  const oldest = rows[0] ? oldestTimeOf(rows[0]) : null
  const latest = latestOf(rows.map((row) => lastActivityOf(mapping, row)))
  const createdAt = oldest ?? latest ?? now
  const lastActivityAt = latest ?? createdAt
  const status = tableRunStatus(targets)
  const hasEnded = status === 'succeeded' || status === 'failed'
  return {
    id: adoptedId(mapping.name, TABLE_RUN_KEY, 'run'),
    source: mapping.name,
    kind: 'crawl',
    status,
    createdAt,
    startedAt: status === 'queued' ? null : (oldest ?? latest),
    resumedAt: null,
    reopenedAt: null,
    plannedAt: all > 0 ? createdAt : null,
    finishedAt: hasEnded ? lastActivityAt : null,
    acknowledgedAt: null,
    paused: null,
    lastActivityAt,
    counts: rowCounts(targets),
    progress: { done: targets.done, total: all },
    resumes: 0,
    retries: 0,
    retryOf: null,
    error: null,
    input: null,
    // A table is never dead, whatever its age: an artifact keeps it.
    artifacts: open > 0 && status !== 'queued' ? 1 : 0,
    owner: null,
    policy: effectivePolicy(mapping, mapping.policy),
    traits: { ...rowTraits(mapping, TABLE_RUN_KEY), isUndated: (oldest ?? latest) === null },
  }
}

function tableRunStatus(targets: Counts['targets']): RunStatus {
  if (targets.in_progress > 0) return 'running'
  const unsuccessful = targets.failed + targets.stuck + targets.parked
  const ended = unsuccessful + targets.done
  if (targets.planned > 0 || ended === 0) return ended > 0 ? 'interrupted' : 'queued'
  return unsuccessful > 0 ? 'failed' : 'succeeded'
}

/** Counts rows by target status. */
export function countByTargetStatus(
  mapping: Mapping,
  counts: readonly Omit<RowCount, 'group'>[],
): Partial<Record<TargetStatus, number>> {
  const sum: Partial<Record<TargetStatus, number>> = {}
  for (const one of counts) {
    const status = targetStatusOf(mapping, one)
    sum[status] = (sum[status] ?? 0) + one.count
  }
  return sum
}

/** Returns counts with nothing but targets. */
export function rowCounts(targets: Partial<Record<TargetStatus, number>>): Counts {
  const none = { planned: 0, in_progress: 0, done: 0, failed: 0, stuck: 0, parked: 0 }
  return {
    targets: { ...none, ...targets },
    pages: 0,
    itemsNew: 0,
    itemsUpdated: 0,
    itemsUnchanged: 0,
    skipped: 0,
    errors: 0,
    refused: 0,
  }
}

/** Derives the ids of a row from its key. */
export function idsOf({ name }: Mapping, { key }: Pick<AdoptedRow, 'key'>) {
  return {
    run: adoptedId(name, key, 'run'),
    target: adoptedId(name, key, 'target'),
    worker: adoptedId(name, key, 'worker'),
  }
}

/** Returns the row's source, sanitized if it is not a valid name. */
export function sourceOf({ name }: Mapping, { source }: AdoptedRow): string {
  if (source === null || source === '') return name
  if (sourceMistake(source) === null) return source
  return sanitizeLine(source, 200) || name
}

function toTarget(
  row: AdoptedRow,
  {
    mapping,
    run,
    worker,
    now,
    callbackResults,
    acknowledgedAt = null,
  }: RowFacts & { readonly mapping: Mapping; readonly run: Run; readonly worker: WorkerId | null },
): Target {
  const isRun = mapping.kind === 'runs'
  const createdAt = createdAtOf(row, now)
  const { key, page } = row.target
  // The items of a run are in its counts; only a checkpoint counts here.
  const hasProgress =
    hasCheckpoint(row, callbackResults) ||
    (!isRun && (callbackResults.hasOutput || page + row.extracted + (row.done ?? 0) > 0))
  return {
    ...row.target,
    id: idsOf(mapping, row).target,
    run: run.id,
    key: isRun ? run.source : key,
    status: targetStatusOf(mapping, row),
    epoch: 0,
    claimId: null,
    worker,
    claimedAt: worker === null ? null : (row.startedAt ?? createdAt),
    seq: Number(hasProgress),
    next: null,
    lastItemId: null,
    cursor: null,
    errors: 0,
    crashes: 0,
    crashesAlone: 0,
    lastActivityAt: lastActivityOf(mapping, row, callbackResults) ?? (isRun ? createdAt : now),
    lastError: row.error,
    finishedAt: row.finishedAt,
    acknowledgedAt,
    ...(!isRun && { origin: { table: mapping.name, key: row.key } }),
  }
}

function hasCheckpoint(row: AdoptedRow, { hasCheckpointFile }: CallbackResults): boolean {
  return row.hasCheckpoint || hasCheckpointFile
}

function rowProgress({ done, total }: AdoptedRow): Run['progress'] {
  if (done === null && total === null) return null
  return { done, total }
}

/** A heartbeat shows that a worker is alive, not that it progresses: it counts only if `activityAt` is not mapped. */
export function activityFields({ columns }: Mapping): TimeField[] {
  return [
    'startedAt',
    'finishedAt',
    columns.activityAt === undefined ? 'heartbeatAt' : 'activityAt',
  ]
}

function lastActivityOf(
  mapping: Mapping,
  row: AdoptedRow,
  callbackResults?: CallbackResults,
): Millis | null {
  const times = activityFields(mapping).map((field) => row[field])
  return latestOf([...times, callbackResults?.filesAt ?? null])
}

/** Without `activityAt`, silence within a lease is normal; without any sign of activity, silence has no limit. */
function effectivePolicy({ columns, checkpoint, outputDir }: Mapping, policy: Policy): Policy {
  if (columns.activityAt !== undefined) return policy
  const hasActivity = columns.heartbeatAt !== undefined || checkpoint || outputDir
  const maxSilenceMs = hasActivity ? Math.max(policy.maxSilenceMs, policy.leaseMs) : Infinity
  return { ...policy, maxSilenceMs }
}

/** Returns whether the row has ended, has an owner or another status, or has a time that is newer than the reopening. */
function hasMovedSince(
  mapping: Mapping,
  row: AdoptedRow,
  { reopened, callbackResults }: RowFacts,
): boolean {
  if (reopened === null) return false
  const { columns } = mapping
  const times = (['startedAt', 'heartbeatAt', 'activityAt'] as const).map((field) => {
    // A date without a time counts as the end of the day, which is later than a reopening on that day.
    const isDay = /^\s*\d{4}-\d\d-\d\d\s*$/.test(String(row.snapshot[columns[field] ?? '']))
    return (row[field] ?? 0) - (isDay ? DAY_MS : 0)
  })
  const isNewer = Math.max(...times, callbackResults.filesAt ?? 0) > reopened.at
  const hasOtherStatus = reopened.status !== null && reopened.status !== row.status
  return !isOpen(mapping, row) || hasOtherStatus || callbackResults.alive === true || isNewer
}

const DAY_MS = 86_400_000

/** Returns the start of a row, else its creation, else its oldest known time. */
export function createdAtOf(row: AdoptedRow, now: Millis): Millis {
  return oldestTimeOf(row) ?? now
}

function oldestTimeOf(row: AdoptedRow): Millis | null {
  if (row.listedAt !== null) return row.listedAt
  const { heartbeatAt, activityAt, finishedAt } = row
  const known = [heartbeatAt, activityAt, finishedAt].filter((at) => at !== null)
  return known.length > 0 ? Math.min(...known) : null
}
