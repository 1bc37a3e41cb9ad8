import type { ClaimedTarget } from '../model/claim.ts'
import { toPaused } from './command-rows.ts'
import { SourcePausedError, UsageError } from '../model/errors.ts'
import { isId } from '../model/id.ts'
import { DEFAULT_POLICY, type Policy } from '../model/policy.ts'
import type { Counts, Paused, Run, RunKind, RunStatus } from '../model/run.ts'
import type { SourceLock } from '../model/source-lock.ts'
import { TARGET_STATUSES, type Cursor, type Target, type TargetStatus } from '../model/target.ts'
import { PROFILE_TRAITS, type RunProfile } from '../model/traits.ts'
import type { AuditEntry, BeginRequest, BeginResult, Listing, LiveRun } from './store.ts'

/**
 * Row → model, shared by the engines. A row arrives with the columns of the schema, times as milliseconds,
 * flags as 0/1 or booleans, and JSON already parsed.
 */

/** The counters of a run's group, in the order of the schema. */
export const COUNTER_COLUMNS = [
  ...TARGET_STATUSES,
  'pages',
  'items_new',
  'items_updated',
  'items_unchanged',
  'skipped',
  'errors',
  'refused',
] as const
export type CounterColumn = (typeof COUNTER_COLUMNS)[number]

/** Null is zero, so that zeros need not be sent. */
export type CountersRow = Record<CounterColumn, number | null>

export function toCounts(row: CountersRow): Counts {
  return {
    targets: {
      planned: row.planned ?? 0,
      in_progress: row.in_progress ?? 0,
      done: row.done ?? 0,
      failed: row.failed ?? 0,
      stuck: row.stuck ?? 0,
      parked: row.parked ?? 0,
    },
    pages: row.pages ?? 0,
    itemsNew: row.items_new ?? 0,
    itemsUpdated: row.items_updated ?? 0,
    itemsUnchanged: row.items_unchanged ?? 0,
    skipped: row.skipped ?? 0,
    errors: row.errors ?? 0,
    refused: row.refused ?? 0,
  }
}

/** The sums of a run's counters. */
export type RunCountersRow = CountersRow & {
  /** Newest entry; null when there is none yet. */
  last_activity_at: number | null
}

/** A run with its counters. */
export type RunRow = RunFactsRow & RunCountersRow

export type RunFactsRow = {
  id: string
  source: string
  kind: RunKind
  status: RunStatus
  /** What differs from the defaults; null: nothing. */
  policy: Partial<Policy> | null
  created_at: number
  started_at: number | null
  resumed_at: number | null
  reopened_at: number | null
  planned_at: number | null
  finished_at: number | null
  acknowledged_at: number | null
  paused_at: number | null
  paused_because: string | null
  progress_done: number | null
  progress_total: number | null
  /** Null is zero, as in the counters. */
  resumes: number | null
  retries: number | null
  retry_of: string | null
  error: string | null
  input: unknown
  artifacts: number | null
  /** Null: standard. One that this version does not know has the traits of a standard run. */
  profile: RunProfile | null
  owner: string | null
  cut?: number | boolean
}

export function toRun(row: RunRow): Run {
  return toRunWith(row, row)
}

function toRunWith(row: RunFactsRow, counters: RunCountersRow): Run {
  return {
    id: row.id,
    source: row.source,
    kind: row.kind,
    status: row.status,
    createdAt: row.created_at,
    startedAt: row.started_at,
    resumedAt: row.resumed_at,
    reopenedAt: row.reopened_at,
    plannedAt: row.planned_at,
    finishedAt: row.finished_at,
    acknowledgedAt: row.acknowledged_at,
    paused: toPaused(row),
    lastActivityAt: counters.last_activity_at ?? row.created_at,
    counts: toCounts(counters),
    progress:
      row.progress_total === null
        ? null
        : { done: row.progress_done ?? 0, total: row.progress_total },
    resumes: row.resumes ?? 0,
    retries: row.retries ?? 0,
    retryOf: row.retry_of,
    error: row.error,
    input: row.input,
    artifacts: row.artifacts ?? 0,
    owner: row.owner,
    policy: row.policy === null ? DEFAULT_POLICY : parsePolicy(row.policy),
    traits: PROFILE_TRAITS[row.profile ?? 'standard'] ?? PROFILE_TRAITS.standard,
    ...(row.cut && { cut: true }),
  }
}

/** Columns of the one target of a run that has only one, beside its status and its time. */
export const ONLY_TARGET_COLUMNS = [
  'checkpoint_seq',
  'page',
  'page_target',
  'errors',
  'crashes_alone',
] as const

/** A live run, and the one target of a run that has only one: both in one row. Null is zero. */
export type LiveRunRow = RunFactsRow &
  Record<(typeof ONLY_TARGET_COLUMNS)[number], number | null> & {
    /** Null: there is none. */
    target_status: TargetStatus | null
    target_last_activity_at: number
  }

export function toLiveRun(row: LiveRunRow, counters: RunCountersRow): LiveRun {
  return {
    run: toRunWith(row, counters),
    target: row.target_status && {
      status: row.target_status,
      worker: row.owner,
      seq: row.checkpoint_seq ?? 0,
      page: row.page ?? 0,
      pageTarget: row.page_target,
      errors: row.errors ?? 0,
      crashesAlone: row.crashes_alone ?? 0,
      lastActivityAt: row.target_last_activity_at,
    },
  }
}

/** Returns what differs from the defaults: a thousand runs with the same policy must not take a megabyte. */
export function serializePolicy(policy: Policy): string {
  const own = Object.entries(policy).filter(
    ([name, value]) => value !== DEFAULT_POLICY[name as keyof Policy],
  )
  return JSON.stringify(Object.fromEntries(own))
}

export function parsePolicy(kept: Partial<Policy>): Policy {
  return Object.keys(kept).length === 0 ? DEFAULT_POLICY : { ...DEFAULT_POLICY, ...kept }
}

/** Columns of a target that are read as they stand. Each engine adds times and long texts in its own way. */
export function targetColumns(table: string): string {
  const columns = `id run_id key group_name url status epoch claim_id worker_id claimed_alone checkpoint_seq
    page page_target last_item_id attempts errors crashes crashes_alone`
  return columns.replace(/\w+/g, `${table}.$&`).replace(/\s+/g, ', ')
}

export type TargetRow = {
  id: string
  run_id: string
  key: string
  group_name: string
  url: string | null
  status: TargetStatus
  epoch: number
  claim_id: string | null
  worker_id: string | null
  claimed_at: number | null
  claimed_alone: number | boolean
  checkpoint_seq: number
  page: number
  page_target: number | null
  next_url: string | null
  last_item_id: string | null
  cursor: unknown
  attempts: number
  errors: number
  crashes: number
  crashes_alone: number
  last_activity_at: number
  last_error: string | null
  finished_at: number | null
  acknowledged_at: number | null
  cut?: number | boolean
}

/** A target for recovery: a crash was counted when the claim was made, and its worker may be dead. */
export function toHeldTarget(row: TargetRow): Target {
  const claimed = row.status === 'in_progress'
  return {
    id: row.id,
    run: row.run_id,
    key: row.key,
    group: row.group_name === '' ? null : row.group_name,
    url: row.url,
    status: row.status,
    epoch: row.epoch,
    claimId: row.claim_id,
    worker: claimed ? row.worker_id : null,
    claimedAt: claimed ? row.claimed_at : null,
    ...toCursor(row),
    attempts: row.attempts,
    errors: row.errors,
    crashes: row.crashes,
    crashesAlone: row.crashes_alone,
    lastActivityAt: row.last_activity_at,
    lastError: row.last_error,
    finishedAt: row.finished_at,
    acknowledgedAt: row.acknowledged_at,
    ...(row.cut && { cut: true }),
  }
}

type CursorRow = Pick<
  TargetRow,
  'checkpoint_seq' | 'page' | 'page_target' | 'next_url' | 'last_item_id' | 'cursor'
>

function toCursor(row: CursorRow): Cursor {
  return {
    seq: row.checkpoint_seq,
    page: row.page,
    pageTarget: row.page_target,
    next: row.next_url,
    lastItemId: row.last_item_id,
    cursor: row.cursor,
  }
}

/** A target for display: the current claim is not counted as a crash. */
export function toTarget(row: TargetRow): Target {
  const target = toHeldTarget(row)
  if (target.status !== 'in_progress') return target
  return {
    ...target,
    crashes: Math.max(0, row.crashes - 1),
    crashesAlone: Math.max(0, row.crashes_alone - Number(row.claimed_alone)),
  }
}

/** The columns that a claim returns. */
export type ClaimedRow = CursorRow &
  Pick<
    TargetRow,
    'id' | 'run_id' | 'key' | 'group_name' | 'url' | 'epoch' | 'errors' | 'crashes'
  > & {
    claim_id: string
    worker_id: string
    data: unknown
  }

export function toClaimed(row: ClaimedRow, source: string): ClaimedTarget {
  return {
    target: row.id,
    epoch: row.epoch,
    claimId: row.claim_id,
    worker: row.worker_id,
    run: row.run_id,
    source,
    key: row.key,
    group: row.group_name === '' ? null : row.group_name,
    url: row.url,
    ...toCursor(row),
    data: row.data,
    errors: row.errors,
    // The crash of this claim itself is counted already.
    crashedBefore: row.crashes > 1,
  }
}

/** The live run of a source as `begin` finds it, with its target if it has only one. */
export type LiveSingleRow = {
  run: string
  kind: RunKind
  target: string | null
  status: TargetStatus | null
  claim_id: string | null
}

/** Returns what keeps `begin` from a claim, or null. */
export function blockBegin(
  live: LiveSingleRow | undefined,
  sourceLock: SourceLock | null,
  { source, onlyRun }: BeginRequest,
  paused: Paused | null,
): BeginResult | null {
  if (sourceLock) return { claimed: null, sourceLock }
  // A process that lost its claim for a moment finishes what it has begun.
  if (paused && onlyRun === undefined) throw new SourcePausedError(source, paused)
  if (onlyRun !== undefined && live?.run !== onlyRun)
    return { claimed: null, blockingRun: live?.run ?? onlyRun }
  if (live && (live.kind !== 'single' || live.status !== 'planned'))
    return { claimed: null, blockingRun: live.run }
  return null
}

/** The result of a claim by `begin`. */
export function begun(claimed: ClaimedTarget): BeginResult {
  return { claimed, resumed: claimed.epoch > 1 }
}

export type AuditRow = Omit<AuditEntry, 'run' | 'target'> & {
  run_id: string | null
  target_id: string | null
}

export function toAuditEntry({ run_id, target_id, ...row }: AuditRow): AuditEntry {
  return { ...row, run: run_id, target: target_id }
}

/** One page of a list: rows are read one beyond the limit to know whether there is more. */
export function toListing<Row, T extends { id: string }>(
  rows: readonly Row[],
  limit: number,
  map: (row: Row) => T,
): Listing<T> {
  const items = rows.slice(0, limit).map(map)
  return { items, next: rows.length > limit ? items.at(-1)!.id : null }
}

/** Lists go by id. A place in a list of something else is refused before a database takes it for one. */
export function checkAfter({ after }: { readonly after?: string | undefined }): void {
  if (after !== undefined && !isId(after))
    throw new UsageError('`after` is no place in this list: give `next` of an earlier answer.')
}
