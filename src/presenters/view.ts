import type { Execution } from '../features/commands/store/store.ts'
import type { SourceLock } from '../core/model/source-lock.ts'
import type { SavedItem } from '../core/model/item.ts'
import {
  progressOf,
  countTargets,
  type AdoptedRef,
  type Counts,
  type AdoptedAction,
  type Run,
} from '../core/model/run.ts'
import type { Cursor, Target } from '../core/model/target.ts'
import { iso, type Millis } from '../core/model/time.ts'
import type { Liveness } from '../core/model/worker.ts'
import type { AssessedWorker, Owner } from '../core/recovery/assess.ts'
import type { AuditEntry } from '../core/store/store.ts'
import { evidenceSentences, factsOf } from './evidence.ts'

/**
 * What scripts see, from the command line and over HTTP alike: docs/reference/json-output.md. Fields may be added here;
 * none is ever renamed or taken away.
 */
export type RunView = {
  id: string
  source: string
  status: Run['status']
  createdAt: string
  startedAt: string | null
  finishedAt: string | null
  lastActivityAt: string
  done: number
  total: number
  extracted: number
  skipped: number
  attempt: number
  error: string | null
  /** The worker of a run with one target; null for a crawl, which has many. Host and pid are null where the worker was not looked up. */
  owner: { worker: string; host: string | null; pid: number | null } | null
  resumable: boolean
  /** The run that this one follows from nothing. */
  retryOf: string | null
  /** The row of a user's own table that it is, and what can be done to it; null for a run of our own. */
  adopted: (AdoptedRef & { can: AdoptedAction[] }) | null
  /** In a list: its error is longer than what is here. */
  cut?: true
}

export function runView(run: Run): RunView {
  return {
    id: run.id,
    source: run.source,
    status: run.status,
    createdAt: iso(run.createdAt),
    startedAt: isoOrNull(run.startedAt),
    finishedAt: isoOrNull(run.finishedAt),
    lastActivityAt: iso(run.lastActivityAt),
    ...progressOf(run),
    extracted: run.counts.itemsNew + run.counts.itemsUpdated,
    skipped: run.counts.skipped + run.counts.itemsUnchanged,
    attempt: 1 + run.resumes,
    error: run.error,
    owner: run.owner === null ? null : { worker: run.owner, host: null, pid: null },
    resumable: run.status === 'interrupted',
    retryOf: run.retryOf,
    adopted: adoptedView(run),
    ...(run.cut && { cut: true as const }),
  }
}

function adoptedView({ adopted }: Run): RunView['adopted'] {
  return adopted ? { table: adopted.table, key: adopted.key, can: [...adopted.can] } : null
}

export type CountsView = Record<keyof Counts['targets'], number> & {
  total: number
  pages: number
  extracted: number
  skipped: number
}

export function countsView(counts: Counts): CountsView {
  return {
    total: countTargets(counts),
    ...counts.targets,
    pages: counts.pages,
    extracted: counts.itemsNew + counts.itemsUpdated,
    skipped: counts.skipped + counts.itemsUnchanged,
  }
}

export function targetView(target: Target) {
  return {
    id: target.id,
    run: target.run,
    key: target.key,
    group: target.group,
    status: target.status,
    page: target.page,
    pageTarget: target.pageTarget,
    next: target.next,
    lastItemId: target.lastItemId,
    cursor: target.cursor,
    attempts: target.attempts,
    crashes: target.crashes,
    worker: target.worker,
    claimedAt: isoOrNull(target.claimedAt),
    lastActivityAt: iso(target.lastActivityAt),
    lastError: target.lastError,
    finishedAt: isoOrNull(target.finishedAt),
    ...(target.cut && { cut: true as const }),
  }
}

export type WorkerView = {
  id: string
  source: string
  host: string
  pid: number
  /** What a user's own table calls one that is known by that alone. */
  label: string | null
  startedAt: string
  lastHeartbeatAt: string
  liveness: Liveness
  because: string
  targets: number
}

export function workerView({ worker, evidence, assessment, targets }: AssessedWorker): WorkerView {
  return {
    id: worker.id,
    source: worker.source,
    host: worker.process.host,
    pid: worker.process.pid,
    label: evidence.label ?? null,
    startedAt: iso(worker.startedAt),
    lastHeartbeatAt: iso(worker.lastHeartbeatAt),
    liveness: assessment.liveness,
    because: assessment.because,
    targets,
  }
}

/** The worker that holds a run or a target, and its liveness. */
export function ownerView({ worker, evidence, assessment }: Owner) {
  return {
    worker: worker.id,
    host: worker.process.host,
    pid: worker.process.pid,
    label: evidence.label ?? null,
    startedAt: iso(worker.startedAt),
    lastHeartbeatAt: iso(worker.lastHeartbeatAt),
    liveness: assessment.liveness,
    because: assessment.because,
  }
}

/** Where the next worker picks up. */
export function checkpointView({ page, pageTarget, next, lastItemId, cursor }: Cursor) {
  return { page, pageTarget, next, lastItemId, cursor }
}

export function itemView(item: SavedItem) {
  return {
    key: item.key,
    url: item.url,
    data: item.data,
    version: item.version,
    run: item.run,
    firstSeenAt: iso(item.firstSeenAt),
    lastSeenAt: iso(item.lastSeenAt),
    changedAt: iso(item.changedAt),
  }
}

export function auditView({ at, evidence, ...entry }: AuditEntry) {
  return {
    ...entry,
    at: iso(at),
    evidence: evidenceSentences(evidence),
    facts: evidence === null ? null : factsOf(evidence),
  }
}

function isoOrNull(at: Millis | null): string | null {
  return at === null ? null : iso(at)
}

/** One life of a run's command. */
export function executionView({ end, startedAt, ...execution }: Execution) {
  const { id, host, command, outputDir, log } = execution
  return {
    id,
    host,
    command,
    outputDir,
    log,
    startedAt: iso(startedAt),
    finishedAt: isoOrNull(end?.at ?? null),
    exitCode: end?.exitCode ?? null,
    signal: end?.signal ?? null,
    because: end?.because ?? null,
    artifacts: end?.artifacts ?? null,
    peakMemory: end?.peakMemory ?? null,
  }
}

/** A wrapped command's hold on its source, also between two runs. */
export function sourceLockView({ source, worker, since, unlockingSince, gaveUp }: SourceLock) {
  return {
    source,
    worker,
    since: isoOrNull(since),
    endingSince: isoOrNull(unlockingSince),
    gaveUp: gaveUp && { at: iso(gaveUp.at), because: gaveUp.because },
  }
}
