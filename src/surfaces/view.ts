import { readSign, STEADY } from '../decide/sign.ts'
import type { SavedItem } from '../model/item.ts'
import { totalTargets, type Counts, type Run } from '../model/run.ts'
import type { Target } from '../model/target.ts'
import { inWords, iso, type Millis } from '../model/time.ts'
import type { Sign } from '../model/worker.ts'
import type { AuditEntry, Held, Witnessed } from '../store/store.ts'

/**
 * What scripts see, from the command line and over HTTP alike: docs/json-output.md. Fields may be added here;
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
  owner: string | null
  resumable: boolean
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
    ...doneOf(run),
    extracted: run.counts.itemsNew + run.counts.itemsUpdated,
    skipped: run.counts.skipped + run.counts.itemsUnchanged,
    attempt: 1 + run.resumes,
    error: run.error,
    owner: run.owner,
    resumable: run.status === 'interrupted',
  }
}

/** Targets for a crawl; for a run with one target what it reported, else 0/1. */
function doneOf(run: Run): { done: number; total: number } {
  if (run.progress) return { done: run.progress.done, total: run.progress.total }
  const { targets } = run.counts
  return { done: targets.done, total: run.kind === 'single' ? 1 : totalTargets(run.counts) }
}

export type CountsView = Record<keyof Counts['targets'], number> & {
  total: number
  pages: number
  extracted: number
  skipped: number
}

export function countsView(counts: Counts): CountsView {
  return {
    total: totalTargets(counts),
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
  }
}

export type WorkerView = {
  id: string
  host: string
  pid: number
  startedAt: string
  lastBeatAt: string
  sign: Sign
  because: string
  targets: number
}

/** `held`: what it works on now; a worker that beats but gets nowhere is told by its targets. */
export function workerView(
  { worker, evidence }: Witnessed,
  held: readonly Held[],
  now: Millis,
): WorkerView {
  const reading = readSign(evidence, STEADY)
  const stalled = reading.sign === 'present' ? longestStalled(held, now) : null
  return {
    id: worker.id,
    host: worker.process.host,
    pid: worker.process.pid,
    startedAt: iso(worker.startedAt),
    lastBeatAt: iso(worker.lastBeatAt),
    sign: stalled === null ? reading.sign : 'stalled',
    because:
      stalled === null
        ? reading.because
        : `${reading.because}, but no progress for ${inWords(stalled)}`,
    targets: held.length,
  }
}

function longestStalled(held: readonly Held[], now: Millis): number | null {
  const still = held
    .filter(({ target, run }) => now - target.lastActivityAt > run.policy.maxSilenceMs)
    .map(({ target }) => now - target.lastActivityAt)
  return still.length > 0 ? Math.max(...still) : null
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

export function auditView({ at, ...entry }: AuditEntry) {
  return { ...entry, at: iso(at) }
}

function isoOrNull(at: Millis | null): string | null {
  return at === null ? null : iso(at)
}
