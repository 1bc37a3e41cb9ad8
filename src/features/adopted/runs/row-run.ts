import type { Policy } from '../../../core/model/policy.ts'
import { isLive, type Counts, type Run, type RunStatus } from '../../../core/model/run.ts'
import { sourceMistake } from '../../../core/model/source.ts'
import { TARGET_STATUSES, type Target, type TargetStatus } from '../../../core/model/target.ts'
import type { Millis } from '../../../core/model/time.ts'
import type { Witnessed } from '../../../core/store/store.ts'
import { adoptedId, WHOLE_TABLE } from '../ids.ts'
import type { Mapping } from '../mapping.ts'
import type { AdoptedRow, AdoptedTable } from '../table/table.ts'
import type { Told } from './callbacks.ts'
import { inOneLine } from '../sanitize-line.ts'
import { witness } from './observe.ts'
import { adoptedRun, runStatusOf, targetStatusOf } from './status-mapping.ts'

/** What is known of a row beside the row itself. */
export type Facts = {
  /** By the clock of the database that the row is in. */
  readonly now: Millis
  /** Null: there is no server. */
  readonly serverStartedAt: Millis | null
  readonly told: Told
  readonly reopened: Reopened | null
  /** What counts for a run now; left out: what its table says. */
  readonly policyOf?: ((run: Run) => Policy) | undefined
}

/** A person opened it again: when, and which word stood there then. */
export type Reopened = { readonly at: Millis; readonly word: string | null }

/** A row as everybody else sees it: a run with its target, or a target with its run, and who has it. */
export type Seen = {
  readonly table: AdoptedTable
  readonly row: AdoptedRow
  /** By the clock of its database, when it was read. */
  readonly now: Millis
  readonly run: Run
  readonly target: Target
  /** Null: nobody is known to have it, or a person said that nothing is to be done about it. */
  readonly witnessed: Witnessed | null
  /** Since a person opened it again it has an owner again, or has moved. */
  readonly hasMoved: boolean
}

/** A row of a table of runs. */
export function seeRun(table: AdoptedTable, row: AdoptedRow, facts: Facts): Seen {
  const { mapping } = table
  const { told } = facts
  const status = runStatusOf(mapping, row.word)
  const hasMoved = movedSince(mapping, row, isLive(status), facts)
  const isReopened = facts.reopened !== null && !hasMoved
  const ids = idsOf(mapping, row)
  const targetStatus = targetStatusOf(mapping, row.word)
  const hasCheckpoint = row.hasCheckpoint || told.hasCheckpointFile
  const createdAt = createdAtOf(row, facts.now)
  const unheld: Run = {
    id: ids.run,
    source: sourceOf(mapping, row),
    kind: 'single',
    status,
    createdAt,
    startedAt: status === 'queued' ? null : createdAt,
    resumedAt: null,
    reopenedAt: isReopened ? (facts.reopened?.at ?? null) : null,
    plannedAt: createdAt,
    finishedAt: row.finishedAt,
    lastActivityAt: lastActivityOf(mapping, row, told) ?? createdAt,
    counts: {
      ...countsOf({ [targetStatus]: 1 }),
      pages: row.target.page,
      itemsNew: row.extracted,
      skipped: row.skipped,
    },
    progress: progressOf(row),
    resumes: 0,
    retries: 0,
    retryOf: null,
    error: row.error,
    input: null,
    // Whatever there is to go on from is a file as good as any.
    artifacts: Number(hasCheckpoint) + Number(told.hasOutput),
    owner: null,
    policy: policyFor(mapping, mapping.policy),
    adopted: adoptedRun(mapping, row.key),
  }
  const judged = byPolicyOfNow(unheld, mapping, facts)
  const witnessed =
    status === 'running' && !isReopened
      ? witness(row, { mapping, run: judged, ids, ...facts })
      : null
  const run = { ...judged, owner: witnessed?.worker.id ?? null }
  const target = {
    ...toTarget(row, { ...run, hasCheckpoint, status: targetStatus, run: ids.run, ids }),
    // What it brought is in the run's counts: only a checkpoint is one.
    seq: Number(hasCheckpoint),
  }
  return { table, row, now: facts.now, run, target, witnessed, hasMoved }
}

/** With the policy that its source has now. */
function byPolicyOfNow(run: Run, mapping: Mapping, { policyOf }: Facts): Run {
  return policyOf ? { ...run, policy: policyFor(mapping, policyOf(run)) } : run
}

/** A row of a table of targets, which is a part of the one run that the table is. */
export function seeTarget(table: AdoptedTable, row: AdoptedRow, whole: Run, facts: Facts): Seen {
  const { mapping } = table
  const run = byPolicyOfNow(whole, mapping, facts)
  const { told } = facts
  const status = targetStatusOf(mapping, row.word)
  const hasMoved = movedSince(mapping, row, status === 'planned' || status === 'in_progress', facts)
  const isReopened = facts.reopened !== null && !hasMoved
  const ids = idsOf(mapping, row)
  const witnessed =
    status === 'in_progress' && !isReopened ? witness(row, { mapping, run, ids, ...facts }) : null
  const target = toTarget(row, {
    status,
    run: run.id,
    ids,
    source: row.target.key,
    owner: witnessed?.worker.id ?? null,
    hasCheckpoint: row.hasCheckpoint || told.hasCheckpointFile || told.hasOutput,
    createdAt: createdAtOf(row, facts.now),
    lastActivityAt: lastActivityOf(mapping, row, told) ?? facts.now,
  })
  return { table, row, now: facts.now, run, target, witnessed, hasMoved }
}

/** The one run that a table of targets is. `newest`: the row that was begun last. */
export function wholeTable(
  mapping: Mapping,
  counts: readonly { readonly word: string; readonly count: number }[],
  newest: AdoptedRow | null,
  now: Millis,
): Run {
  const targets = countsOf(sumOf(mapping, counts)).targets
  const open = targets.planned + targets.in_progress
  const all = TARGET_STATUSES.reduce((sum, status) => sum + targets[status], 0)
  const createdAt = newest ? createdAtOf(newest, now) : now
  const lastActivityAt = (newest && lastActivityOf(mapping, newest)) ?? createdAt
  const status = statusOfWhole(targets)
  const hasEnded = status === 'succeeded' || status === 'failed'
  return {
    id: adoptedId(mapping.name, WHOLE_TABLE, 'run'),
    source: mapping.name,
    kind: 'crawl',
    status,
    createdAt,
    startedAt: status === 'queued' ? null : createdAt,
    resumedAt: null,
    reopenedAt: null,
    plannedAt: all > 0 ? createdAt : null,
    finishedAt: hasEnded ? lastActivityAt : null,
    lastActivityAt,
    counts: countsOf(targets),
    progress: { done: targets.done, total: all },
    resumes: 0,
    retries: 0,
    retryOf: null,
    error: null,
    input: null,
    // A table is never dead, whatever its age: it is kept, as all that has something to go on from.
    artifacts: open > 0 ? 1 : 0,
    owner: null,
    policy: policyFor(mapping, mapping.policy),
    adopted: adoptedRun(mapping, WHOLE_TABLE),
  }
}

function statusOfWhole(targets: Counts['targets']): RunStatus {
  if (targets.in_progress > 0) return 'running'
  const troubled = targets.failed + targets.stuck + targets.parked
  const ended = troubled + targets.done
  if (targets.planned > 0 || ended === 0) return ended > 0 ? 'interrupted' : 'queued'
  return troubled > 0 ? 'failed' : 'succeeded'
}

/** How many rows of a table count as which target. */
export function sumOf(
  mapping: Mapping,
  counts: readonly { readonly word: string; readonly count: number }[],
): Partial<Record<TargetStatus, number>> {
  const sum: Partial<Record<TargetStatus, number>> = {}
  for (const { word, count } of counts) {
    const status = targetStatusOf(mapping, word)
    sum[status] = (sum[status] ?? 0) + count
  }
  return sum
}

/** Books in which only targets are counted. */
export function countsOf(targets: Partial<Record<TargetStatus, number>>): Counts {
  const none = { planned: 0, in_progress: 0, done: 0, failed: 0, stuck: 0, parked: 0 }
  return {
    targets: { ...none, ...targets },
    pages: 0,
    itemsNew: 0,
    itemsUpdated: 0,
    itemsUnchanged: 0,
    skipped: 0,
    refused: 0,
  }
}

/** The row's ids, each always the same. */
export function idsOf({ name }: Mapping, { key }: Pick<AdoptedRow, 'key'>) {
  return {
    run: adoptedId(name, key, 'run'),
    target: adoptedId(name, key, 'target'),
    worker: adoptedId(name, key, 'worker'),
  }
}

/** Sources are shown and typed as names: what is none in the user's table is made one. */
export function sourceOf({ name }: Mapping, { source }: AdoptedRow): string {
  if (source === null || source === '') return name
  if (sourceMistake(source) === null) return source
  return inOneLine(source, 200) || name
}

function toTarget(
  row: AdoptedRow,
  facts: Pick<Run, 'source' | 'owner' | 'createdAt' | 'lastActivityAt'> & {
    readonly run: string
    readonly ids: ReturnType<typeof idsOf>
    readonly status: TargetStatus
    readonly hasCheckpoint: boolean
  },
): Target {
  const { page, pageTarget, group, url, attempts } = row.target
  const hasProgress = facts.hasCheckpoint || page + row.extracted + (row.done ?? 0) > 0
  return {
    id: facts.ids.target,
    run: facts.run,
    key: facts.source,
    group,
    url,
    status: facts.status,
    epoch: 0,
    claimId: null,
    worker: facts.owner,
    claimedAt: facts.owner === null ? null : (row.startedAt ?? facts.createdAt),
    seq: hasProgress ? 1 : 0,
    page,
    pageTarget,
    next: null,
    lastItemId: null,
    cursor: null,
    attempts,
    errors: 0,
    crashes: 0,
    crashesAlone: 0,
    lastActivityAt: facts.lastActivityAt,
    lastError: row.error,
    finishedAt: row.finishedAt,
  }
}

function progressOf({ done, total }: AdoptedRow): Run['progress'] {
  if (done === null && total === null) return null
  return { done: done ?? 0, total: total ?? Math.max(1, done ?? 0) }
}

/** A beat says that somebody is there, not that the work moves: it counts only where nothing better is mapped. */
function lastActivityOf({ columns }: Mapping, row: AdoptedRow, told?: Told): Millis | null {
  const beat = columns.activityAt === undefined ? row.heartbeatAt : null
  return newestOf([row.startedAt, row.finishedAt, row.activityAt, beat, told?.filesAt ?? null])
}

/** Where beats are all there is to see of the work, nothing more can be said of it between two of them; where nothing is, nothing. */
function policyFor({ columns, checkpoint, outputDir }: Mapping, policy: Policy): Policy {
  if (columns.activityAt !== undefined) return policy
  const isSeen = columns.heartbeatAt !== undefined || checkpoint || outputDir
  const maxSilenceMs = isSeen ? Math.max(policy.maxSilenceMs, policy.leaseMs) : Infinity
  return { ...policy, maxSilenceMs }
}

/** It has an owner again, has ended, has another word, or anything of it is newer than its opening. */
function movedSince(
  { columns }: Mapping,
  row: AdoptedRow,
  isOpen: boolean,
  { reopened, told }: Facts,
): boolean {
  if (reopened === null) return false
  const times = (['startedAt', 'heartbeatAt', 'activityAt'] as const).map((field) => {
    // A day counts as its end, which is later than an opening on that day.
    const isDay = /^\s*\d{4}-\d\d-\d\d\s*$/.test(String(row.stamp[columns[field] ?? '']))
    return (row[field] ?? 0) - (isDay ? DAY_MS : 0)
  })
  const isNewer = Math.max(...times, told.filesAt ?? 0) > reopened.at
  const isOther = reopened.word !== null && reopened.word !== row.word
  return !isOpen || isOther || told.alive === true || isNewer
}

const DAY_MS = 86_400_000

function newestOf(times: readonly (Millis | null)[]): Millis | null {
  const known = times.filter((at) => at !== null)
  return known.length > 0 ? Math.max(...known) : null
}

/** The oldest time that is known of it. */
export function createdAtOf(row: AdoptedRow, now: Millis): Millis {
  if (row.startedAt !== null) return row.startedAt
  const { heartbeatAt, activityAt, finishedAt } = row
  const known = [heartbeatAt, activityAt, finishedAt].filter((at) => at !== null)
  return known.length > 0 ? Math.min(...known) : now
}
