import type { Alert } from '../features/alerts/store/store.ts'
import type * as json from './responses.ts'
import type { SourceLock } from '../core/model/source-lock.ts'
import type { SavedItem } from '../features/items/store/store.ts'
import { countTargets, type Counts, type Run } from '../core/model/run.ts'
import type { RunTraits } from '../core/model/traits.ts'
import { auditName, formatAge, knownPages, knownTime, progressOf } from './format.ts'
import type { Cursor, OnlyTarget, Target } from '../core/model/target.ts'
import { iso, type Millis, humanizeDuration } from '../core/model/time.ts'
import type { Owner } from '../core/recovery/assess.ts'
import type { AssessedWorker } from '../core/recovery/assess-workers.ts'
import type { AuditEntry, WorkerObservation } from '../core/store/store.ts'

/** The records of `--json`, HTTP and the library from those of the store: docs/reference/json-output.md. */

export function runView(run: Run): json.Run {
  return {
    id: run.id,
    source: run.source,
    status: run.status,
    createdAt: isoOrNull(knownTime(run, run.createdAt)),
    startedAt: isoOrNull(run.startedAt),
    finishedAt: isoOrNull(run.finishedAt),
    lastActivityAt: isoOrNull(knownTime(run, run.lastActivityAt)),
    ...progressOf(run),
    extracted: run.counts.itemsNew + run.counts.itemsUpdated,
    unchanged: run.counts.itemsUnchanged,
    skipped: run.counts.skipped,
    attempt: 1 + run.resumes,
    error: run.error,
    owner: run.owner === null ? null : { worker: run.owner, ...processView(run.ownerProcess) },
    resumable: run.status === 'interrupted',
    retryOf: run.retryOf,
    acknowledged: run.acknowledgedAt !== null,
    origin: run.traits.origin,
    ...(run.cut && { cut: true as const }),
  }
}

/** A row of a user's own table may name neither. */
function processView(of: Run['ownerProcess']): Pick<json.RunOwner, 'host' | 'pid'> {
  return { host: of?.host || null, pid: of?.pid || null }
}

export function countsView(counts: Counts, traits: Pick<RunTraits, 'origin'>): json.Counts {
  return {
    total: countTargets(counts),
    ...counts.targets,
    pages: knownPages(counts, traits),
    extracted: counts.itemsNew + counts.itemsUpdated,
    unchanged: counts.itemsUnchanged,
    skipped: counts.skipped,
  }
}

export function targetView(target: Target): json.Target {
  return {
    id: target.id,
    run: target.run,
    origin: target.origin ?? null,
    key: target.key,
    group: target.group,
    status: target.status,
    ...checkpointView(target),
    attempts: target.attempts,
    crashes: target.crashes,
    worker: target.worker,
    claimedAt: isoOrNull(target.claimedAt),
    lastActivityAt: iso(target.lastActivityAt),
    lastError: target.lastError,
    finishedAt: isoOrNull(target.finishedAt),
    acknowledged: target.acknowledgedAt !== null,
    ...(target.cut && { cut: true as const }),
  }
}

export function workerView({ worker, evidence, assessment, targets }: AssessedWorker): json.Worker {
  return {
    id: worker.id,
    source: worker.source,
    ...processView(worker.process),
    label: evidence.label ?? null,
    startedAt: isoOrNull(worker.startedAt || null),
    lastHeartbeatAt: lastHeartbeatOf({ worker, evidence }),
    liveness: assessment.liveness,
    because: assessment.because,
    targets,
  }
}

/** The worker that holds a run or a target, and its liveness. */
export function ownerView({ worker, evidence, assessment }: Owner): json.Owner {
  return {
    worker: worker.id,
    ...processView(worker.process),
    label: evidence.label ?? null,
    startedAt: isoOrNull(worker.startedAt || null),
    lastHeartbeatAt: lastHeartbeatOf({ worker, evidence }),
    liveness: assessment.liveness,
    because: assessment.because,
  }
}

/** Null for a row of a user's own table that has never had one. */
function lastHeartbeatOf({ worker, evidence }: WorkerObservation): string | null {
  const { neverBeat, isActivity } = evidence
  return neverBeat || isActivity ? null : iso(worker.lastHeartbeatAt)
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

/** The last saved page, as far as a list of runs has it; null before the first one. */
export function lastPageView({
  seq,
  page,
  pageTarget,
}: OnlyTarget): json.AssessedRun['checkpoint'] {
  return seq > 0 ? { page, pageTarget } : null
}

/** The page of a target, with the number of pages if it is known: `3/12`. */
export function formatPage(
  { page, pageTarget }: Pick<Target, 'page' | 'pageTarget'>,
  separator: string,
): string {
  return pageTarget === null ? `${page}` : `${page}${separator}${pageTarget}`
}

export function itemView(item: SavedItem): json.Item {
  return {
    key: item.key,
    url: item.url,
    data: item.data,
    version: item.version,
    run: item.run,
    group: item.group,
    dataset: item.dataset,
    firstSeenAt: iso(item.firstSeenAt),
    lastSeenAt: iso(item.lastSeenAt),
    changedAt: iso(item.changedAt),
  }
}

export function auditView({ at, evidence, ...entry }: AuditEntry): json.AuditEntry {
  return {
    ...entry,
    subject: auditName(entry),
    at: iso(at),
    evidence: evidenceSentences(evidence),
    facts: evidence === null ? null : factsOf(evidence),
  }
}

export function isoOrNull(at: Millis | null): string | null {
  return at === null ? null : iso(at)
}

export function alertView({ since, lastSentAt, resolvedAt, ...alert }: Alert) {
  const { cause, rule, source, run, because, command } = alert
  return {
    cause,
    rule,
    source,
    run,
    because,
    command,
    since: iso(since),
    lastSentAt: lastSentAt === null ? null : iso(lastSentAt),
    resolvedAt: resolvedAt === null ? null : iso(resolvedAt),
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

/** The facts of a verdict as JSON: without the row hashes that bind it to what was assessed. */
export function factsOf(evidence: unknown): Record<string, unknown> {
  if (!isRecord(evidence)) return {}
  const { rowHash: _, ...facts } = evidence
  return isRecord(facts['owner']) ? { ...facts, owner: factsOf(facts['owner']) } : facts
}

/** The same in sentences. Reads only fields it knows: the audit trail also has evidence of other kinds. */
export function evidenceSentences(evidence: unknown): string[] {
  if (!isRecord(evidence)) return []
  return 'presence' in evidence ? workerSentences(evidence) : runSentences(evidence)
}

function workerSentences(evidence: Record<string, unknown>): string[] {
  if ('label' in evidence) return rowSentences(evidence)
  const { presence, presenceKind, process, host, pid } = evidence
  const name = `Process ${text(pid)} on ${text(host)}`
  const seen = {
    alive: `${name} exists.`,
    gone: `${name} no longer exists.`,
    unknown: `${name} cannot be observed from here.`,
  }[text(process)]
  return [
    lockSentence(text(presenceKind), text(presence)),
    seen,
    heartbeatSentence(evidence),
    lagSentence(evidence),
  ].filter((one) => one !== undefined)
}

/** A worker that is known only from a row of a user's own table. */
function rowSentences(evidence: Record<string, unknown>): string[] {
  const { aliveCheck, neverBeat, isActivity, heartbeatAgeMs, leaseMs, process, pid, host } =
    evidence
  if (aliveCheck === 'alive') return ['The config’s alive() returned true.']
  if (aliveCheck === 'gone') return ['The config’s alive() returned false.']
  const ofProcess = {
    alive: `A process with the id ${text(pid)} exists on ${text(host)}.`,
    gone: `Its process ${text(pid)} no longer exists on ${text(host)}.`,
  }[text(process)]
  const heartbeat =
    isActivity === true
      ? undefined
      : neverBeat === true
        ? 'It never sent a heartbeat.'
        : heartbeatSentence({ heartbeatAgeMs, leaseMs })
  return [ofProcess, heartbeat].filter((one) => one !== undefined)
}

function lockSentence(kind: string, presence: string): string | undefined {
  if (kind === 'none') return 'It holds no lock: only heartbeats count.'
  if (presence === 'held') return 'Its lock is held.'
  if (presence === 'unknown') return 'Its lock cannot be observed from here.'
  if (presence !== 'free') return undefined
  return kind === 'file'
    ? 'The kernel has freed its lock, which only the end of the process does.'
    : 'Its database session has ended and freed its lock.'
}

function heartbeatSentence({
  heartbeatAgeMs,
  heartbeatMs,
  leaseMs,
}: Record<string, unknown>): string | undefined {
  if (!isNumber(heartbeatAgeMs)) return undefined
  const due = isNumber(heartbeatMs) ? `; one is due every ${humanizeDuration(heartbeatMs)}` : ''
  const lease = isNumber(leaseMs)
    ? `, and after ${humanizeDuration(leaseMs)} it counts as silent`
    : ''
  return `Its last heartbeat was ${formatAge(heartbeatAgeMs)} old${due}${lease}.`
}

/** A main thread that is busy for a second or more may explain missing heartbeats. */
function lagSentence({ loopLagMs }: Record<string, unknown>): string | undefined {
  return isNumber(loopLagMs) && loopLagMs >= 1_000
    ? `Its main thread had been busy for ${humanizeDuration(loopLagMs)} at that heartbeat.`
    : undefined
}

function runSentences(evidence: Record<string, unknown>): string[] {
  const { ageMs, idleMs, pages, extracted, unchanged, skipped, hasProgress, owner } = evidence
  const sentences: string[] = []
  if (isNumber(ageMs)) {
    const idle = isNumber(idleMs)
      ? `; nothing of it has changed for ${humanizeDuration(idleMs)}`
      : ''
    sentences.push(`The run was ${formatAge(ageMs)} old${idle}.`)
  }
  if (isNumber(pages) && isNumber(extracted) && isNumber(unchanged) && isNumber(skipped)) {
    const progress = hasProgress
      ? 'there is progress to continue from'
      : 'there is no progress to continue from'
    sentences.push(
      `Pages saved: ${pages}, items extracted: ${extracted}, unchanged: ${unchanged}, skipped: ${skipped}: ${progress}.`,
    )
  }
  if (owner === null) sentences.push('No owner is known.')
  return [...sentences, ...evidenceSentences(owner)]
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value)
}

function text(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '?'
}
