import type { Verdict } from '../core/model/verdict.ts'
import { iso } from '../core/model/time.ts'
import { browseRuns, browseWorkers, type BrowseList } from '../presenters/browse.ts'
import type { Snapshot, View } from '../interfaces/top/snapshot.ts'
import type { ListedRun, Worker as WorkerView } from '../presenters/records.ts'
import type { Verdict as VerdictView } from '../presenters/results.ts'
import { verdictView } from '../presenters/verdict.ts'
import { EVIDENCE } from './fixtures.ts'

/** Snapshots of `top`, always of the same moment. */

export const NOW = Date.parse('2026-11-16T03:12:45Z')
const MINUTE_MS = 60_000

export function makeSnapshot(
  view: View,
  list: BrowseList,
  overrides: Partial<Snapshot> = {},
): Snapshot {
  return {
    now: NOW,
    where: '/srv/unstuck.db',
    summary: 'Something is stuck: 2 runs healthy, 1 run stuck for 12 min, 2 targets parked.',
    style: 'bad',
    view,
    list,
    detail: null,
    ...overrides,
  }
}

export function runsSnapshot(
  runs: readonly ListedRun[],
  overrides: Partial<Snapshot> = {},
): Snapshot {
  return makeSnapshot('runs', browseRuns(runs, NOW), overrides)
}

export function workersSnapshot(workers: readonly WorkerView[]): Snapshot {
  return makeSnapshot('workers', browseWorkers(workers, NOW))
}

export function makeRun(id: string, overrides: Partial<ListedRun> = {}): ListedRun {
  return {
    id: `01934d2a-0000-7000-8000-0000${id}`,
    source: 'catalogue',
    status: 'running',
    createdAt: iso(NOW - 60 * MINUTE_MS),
    startedAt: iso(NOW - 60 * MINUTE_MS),
    finishedAt: null,
    lastActivityAt: iso(NOW - 2_000),
    done: 40,
    total: 120,
    extracted: 400,
    unchanged: 0,
    skipped: 0,
    attempt: 1,
    error: null,
    owner: null,
    resumable: false,
    retryOf: null,
    acknowledged: false,
    origin: null,
    pages: 80,
    planned: true,
    kind: 'crawl',
    health: 'healthy',
    severity: 'ok',
    because: 'process 4112 on vm is alive: last heartbeat 4 s ago',
    pace: { pagesPerMinute: 12.4, itemsPerMinute: 60, etaSeconds: { from: 480, to: 660 } },
    ...overrides,
  }
}

const ORPHAN: Partial<ListedRun> = {
  source: 'directory',
  health: 'orphaned',
  severity: 'stuck',
  because: 'process 4111 on vm no longer exists (last heartbeat 12 min ago)',
  lastActivityAt: iso(NOW - 12 * MINUTE_MS),
  done: 1,
  total: 8,
  extracted: 90,
  pace: null,
}

export function makeRuns(): ListedRun[] {
  return [
    makeRun('f9f0fe52'),
    makeRun('bbdb7d00', ORPHAN),
    makeRun('504a7fbe', {
      source: '宽字符目标名称',
      status: 'queued',
      health: 'waiting',
      severity: 'ok',
      planned: false,
      because: 'it is queued and waits for a worker',
      done: 0,
      extracted: 0,
      pace: null,
      lastActivityAt: iso(NOW - 3 * MINUTE_MS),
    }),
    makeRun('fce5966d', {
      source: 'tender-portal-of-the-whole-union',
      status: 'abandoned',
      health: null,
      severity: null,
      because: null,
      done: 0,
      total: 1,
      extracted: 0,
      pace: null,
      lastActivityAt: iso(NOW - 26 * 60 * MINUTE_MS),
      error: 'no worker has it, 26 h old, no progress and no checkpoint',
    }),
  ]
}

export function makeWorker(id: string, overrides: Partial<WorkerView> = {}): WorkerView {
  return {
    id: `01934d2a-0000-7000-8000-0000${id}`,
    source: 'catalogue',
    host: 'vm',
    pid: 4112,
    label: null,
    startedAt: iso(NOW - 60 * MINUTE_MS),
    lastHeartbeatAt: iso(NOW - 400),
    liveness: 'present',
    because: 'process 4112 on vm is alive: last heartbeat 4 s ago',
    targets: 3,
    ...overrides,
  }
}

export function makeVerdict(id: string, overrides: Partial<Verdict> = {}): VerdictView {
  const verdict: Verdict = {
    run: '01934d2a-0000-7000-8000-0000bbdb7d00',
    target: `01934d2a-0000-7000-8000-0000${id}`,
    key: null,
    source: 'directory',
    action: 'resume',
    because:
      'process 4111 on vm no longer exists (last heartbeat 12 min ago); continues after page 1',
    liveness: 'gone',
    evidence: EVIDENCE,
    from: 'in_progress',
    to: 'planned',
    needsAttention: false,
    applied: false,
    ...overrides,
  }
  return verdictView(verdict, false)
}
