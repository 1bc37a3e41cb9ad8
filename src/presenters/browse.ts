import { isLive, type RunStatus } from '../core/model/run.ts'
import { shortId, type RunId } from '../core/model/id.ts'
import { HEALTH_STATES } from '../core/decide/health.ts'
import { humanizeDuration, type Millis } from '../core/model/time.ts'
import type { AuditEntry } from '../core/store/store.ts'
import type { Cell, Column, Span } from '../lib/text/sentence.ts'
import type { DeadLetterGroups } from './dead-letters.ts'
import type { DeadLetterGroup } from './responses.ts'
import {
  formatAge,
  formatAgo,
  formatLiveness,
  formatProcessCell,
  formatRunStatus,
  formatSource,
  progressBar,
} from './format.ts'
import { NOTHING_DONE } from './history.ts'
import type { ListedRun, Worker as WorkerView } from './records.ts'
import { formatChange, formatReason } from './verdict.ts'
import type { Verdict as VerdictView } from './results.ts'
import { NO_WORKERS } from './workers.ts'

/** A list that is sorted, filtered and opened row by row: a view of `top`. */
export type BrowseList = {
  /** Singular and plural. */
  readonly noun: readonly [string, string]
  /** Shown instead of a list without rows. */
  readonly empty: string
  readonly columns: readonly BrowseColumn[]
  readonly orders: readonly string[]
  readonly rows: readonly BrowseRow[]
}

/** `from`: shown only on a terminal of at least this many columns, so that names are not cut for it. */
export type BrowseColumn = Column & { readonly from?: number }

export type BrowseRow = {
  readonly id: string
  /** The run that actions on this row apply to; null if there is none. */
  readonly run: RunId | null
  readonly cells: readonly Cell[]
  /** Shown below the list while the row is selected. */
  readonly about: string
  /** What each of the orders sorts by, ascending. */
  readonly ranks: readonly (string | number)[]
}

export function browseRuns(runs: readonly ListedRun[], now: Millis): BrowseList {
  return {
    noun: ['run', 'runs'],
    empty:
      'Nothing has run yet. See it work with `unstuck demo`, or start `unstuck work crawl.ts`.',
    columns: [
      { header: 'RUN' },
      { header: 'SOURCE', flex: true },
      { header: 'STATUS' },
      { header: 'DONE', align: 'right' },
      { header: '', optional: 3 },
      { header: 'PAGES/MIN', align: 'right', from: 100 },
      { header: 'LEFT', align: 'right', from: 100 },
      { header: 'ITEMS', align: 'right', optional: 2 },
      { header: 'ACTIVITY', align: 'right', optional: 1 },
    ],
    orders: ['attention', 'source', 'activity', 'share done', 'age'],
    rows: runs.toSorted(byActivity).map((run) => {
      const { id, source, status, health, done, total, pace, because, error } = run
      const idleMs = now - Date.parse(run.lastActivityAt)
      const plus = run.planned || run.kind === 'single' ? '' : '+'
      const isStuck = health !== null && ['orphaned', 'stalled', 'dead'].includes(health)
      const ended = [status === 'abandoned' ? formatRunStatus(status).text : null, error]
      return {
        id,
        run: id,
        cells: [
          shortId(id),
          formatSource(run.source, run.origin),
          isStuck ? { text: health, style: 'bad' } : shortStatus(status),
          `${done}/${total}${plus}`,
          progressBar(done, total),
          pace ? String(Math.round(pace.pagesPerMinute)) : '',
          pace?.etaSeconds ? formatEta(pace.etaSeconds) : '',
          String(run.extracted),
          formatAgo(now - idleMs, now),
        ],
        about: because ?? ended.filter((part) => part !== null).join(': '),
        ranks: [
          isLive(status) && health !== null ? HEALTH_STATES.indexOf(health) : HEALTH_STATES.length,
          source,
          idleMs,
          total > 0 ? done / total : 0,
          run.createdAt,
        ],
      }
    }),
  }
}

/** Newest first, also among runs of equal rank. */
function byActivity(a: ListedRun, b: ListedRun): number {
  return Date.parse(b.lastActivityAt) - Date.parse(a.lastActivityAt)
}

/** The long status is shown below the list: it would cut all other columns. */
function shortStatus(status: RunStatus): Span {
  const span = formatRunStatus(status)
  return status === 'abandoned' ? { ...span, text: 'cleaned' } : span
}

/** `8–11 min` */
function formatEta({ from, to }: { from: number; to: number }): string {
  const [low, high] = [humanizeDuration(from * 1_000), humanizeDuration(to * 1_000)]
  const [, unit] = high.split(' ')
  if (low === high) return low
  return low.endsWith(` ${unit}`) ? `${low.split(' ')[0]}–${high}` : `${low} – ${high}`
}

const LIVENESS_ORDER = ['gone', 'silent', 'stalled', 'unknown', 'present']

export function browseWorkers(workers: readonly WorkerView[], now: Millis): BrowseList {
  return {
    noun: ['worker', 'workers'],
    empty: NO_WORKERS,
    columns: [
      { header: 'WORKER' },
      { header: 'SOURCE', flex: true },
      { header: 'PROCESS', flex: true, optional: 3 },
      { header: 'LIVENESS' },
      { header: 'TARGETS', align: 'right', optional: 1 },
      { header: 'UP', align: 'right', optional: 2 },
      { header: 'HEARTBEAT', align: 'right' },
    ],
    orders: ['liveness', 'heartbeat', 'targets', 'source', 'process'],
    rows: workers.map((worker) => {
      const { id, label, source, host, pid, liveness, targets, lastHeartbeatAt } = worker
      return {
        id,
        run: null,
        cells: [
          // The id of a worker that is known only from a user's own table is made up.
          label === null ? shortId(id) : '',
          source,
          formatProcessCell(worker),
          formatLiveness(liveness),
          String(targets),
          formatAge(now - Date.parse(worker.startedAt)),
          formatAgo(Date.parse(lastHeartbeatAt), now),
        ],
        about: worker.because,
        ranks: [
          LIVENESS_ORDER.indexOf(liveness),
          lastHeartbeatAt,
          -targets,
          source,
          `${host} ${pid}`,
        ],
      }
    }),
  }
}

export function browseVerdicts(verdicts: readonly VerdictView[]): BrowseList {
  return {
    noun: ['verdict', 'verdicts'],
    empty: 'Nothing to recover: no worker that held something is gone, silent or stalled.',
    columns: [
      { header: 'ACTION' },
      { header: 'SUBJECT' },
      { header: 'SOURCE', flex: true },
      { header: 'CHANGE', optional: 2 },
      { header: 'LIVENESS', optional: 1 },
      { header: 'KEY' },
    ],
    orders: ['outcome', 'source', 'action'],
    rows: verdicts.map((verdict) => {
      const { action, run, target, source, liveness, subject, outcome } = verdict
      const isPlanned = outcome === 'planned'
      const isTarget = subject.kind === 'target'
      return {
        id: target ?? run,
        run,
        cells: [
          { text: action, style: isPlanned ? 'strong' : 'warn' },
          `${isTarget ? 'target' : 'run'} ${shortId(isTarget ? target! : run)}`,
          subject.kind === 'row' ? subject.label.replace(/^run \S+ of /, '') : source,
          formatChange(verdict),
          formatLiveness(liveness),
          isPlanned ? 'R' : outcome === 'needs-attention' && action === 'abandon' ? 'C' : '',
        ],
        about: formatReason(verdict),
        ranks: [Number(!isPlanned), source, action],
      }
    }),
  }
}

export function browseDeadLetters(
  { groups, isPartial }: DeadLetterGroups,
  now: Millis,
): BrowseList {
  return {
    noun: ['kind of error', 'kinds of errors'],
    empty: 'No target failed, is stuck or parked.',
    columns: [
      { header: 'TARGETS', align: 'right' },
      { header: 'STATUS', optional: 2 },
      { header: 'ERROR', flex: true },
      { header: 'SOURCES', flex: true, optional: 3 },
      { header: 'LAST', align: 'right', optional: 1 },
    ],
    orders: ['count', 'last seen', 'error'],
    rows: groups.map(({ fingerprint, count, statuses, error, sources, lastAt }) => ({
      id: fingerprint,
      run: null,
      cells: [
        `${isPartial ? 'at least ' : ''}${count}`,
        formatStatuses(statuses),
        error,
        sources.join(', '),
        formatAgo(Date.parse(lastAt), now),
      ],
      about: error,
      ranks: [-count, -Date.parse(lastAt), error],
    })),
  }
}

/** `29 failed, 1 stuck`; without the number if there is only one status. */
function formatStatuses(statuses: DeadLetterGroup['statuses']): Span {
  const counts = Object.entries(statuses).filter(([, count]) => count > 0)
  const isParked = counts.every(([status]) => status === 'parked')
  const parts = counts.map(([name, count]) => (counts.length === 1 ? name : `${count} ${name}`))
  return { text: parts.join(', '), style: isParked ? 'warn' : 'bad' }
}

export function browseHistory(entries: readonly AuditEntry[], now: Millis): BrowseList {
  return {
    noun: ['entry', 'entries'],
    empty: NOTHING_DONE,
    columns: [
      { header: 'WHEN', align: 'right' },
      { header: 'ACTION' },
      { header: 'SUBJECT' },
      { header: 'SOURCE', flex: true },
      { header: 'BY', flex: true, optional: 1 },
    ],
    orders: ['time', 'source', 'action'],
    rows: entries.map(({ id, at, action, run, target, source, actor, because }) => ({
      id: String(id),
      run,
      cells: [
        { text: formatAgo(at, now), style: 'dim' },
        { text: action, style: 'strong' },
        target === null ? `run ${shortId(run)}` : `target ${shortId(target)}`,
        source,
        actor,
      ],
      about: because,
      ranks: [-id, source, action],
    })),
  }
}
