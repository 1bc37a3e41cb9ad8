import type { Execution } from '../features/commands/store/store.ts'
import type { SourceLock } from '../core/model/source-lock.ts'
import type { SavedItem } from '../core/model/item.ts'
import { progressOf, countTargets, type Counts, type Run } from '../core/model/run.ts'
import type { Cursor, Target } from '../core/model/target.ts'
import { iso, type Millis } from '../core/model/time.ts'
import type { AssessedWorker, Owner } from '../core/recovery/assess.ts'
import type { AuditEntry } from '../core/store/store.ts'
import type * as json from './responses.ts'
import { evidenceSentences, factsOf } from './evidence.ts'

/** The records of `--json`, HTTP and the library from those of the store: docs/reference/json-output.md. */

export function runView(run: Run): json.Run {
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

function adoptedView({ adopted }: Run): json.Run['adopted'] {
  return adopted ? { table: adopted.table, key: adopted.key, can: [...adopted.can] } : null
}

export function countsView(counts: Counts): json.Counts {
  return {
    total: countTargets(counts),
    ...counts.targets,
    pages: counts.pages,
    extracted: counts.itemsNew + counts.itemsUpdated,
    skipped: counts.skipped + counts.itemsUnchanged,
  }
}

export function targetView(target: Target): json.Target {
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

export function workerView({ worker, evidence, assessment, targets }: AssessedWorker): json.Worker {
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
export function ownerView({ worker, evidence, assessment }: Owner): json.Owner {
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
export function checkpointView({
  page,
  pageTarget,
  next,
  lastItemId,
  cursor,
}: Cursor): json.Checkpoint {
  return { page, pageTarget, next, lastItemId, cursor }
}

export function itemView(item: SavedItem): json.Item {
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

export function auditView({ at, evidence, ...entry }: AuditEntry): json.AuditEntry {
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
export function executionView({ end, startedAt, ...execution }: Execution): json.Execution {
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
export function sourceLockView({
  source,
  worker,
  since,
  unlockingSince,
  gaveUp,
}: SourceLock): json.SourceLock {
  return {
    source,
    worker,
    since: isoOrNull(since),
    endingSince: isoOrNull(unlockingSince),
    gaveUp: gaveUp && { at: iso(gaveUp.at), because: gaveUp.because },
  }
}
