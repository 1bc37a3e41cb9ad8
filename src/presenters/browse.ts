import { isLive } from '../core/model/run.ts'
import { rowName } from '../core/model/traits.ts'
import { type RunId } from '../core/model/id.ts'
import { HEALTH_STATES } from '../core/decide/health.ts'
import type { Millis } from '../core/model/time.ts'
import type { AuditEntry } from '../core/store/store.ts'
import {
  flex,
  left,
  longest,
  right,
  type Cell,
  type Column,
  type ColumnOf,
  type Span,
} from '../lib/text/sentence.ts'
import type { DeadLetterGroups } from './dead-letters.ts'
import type { DeadLetterGroup } from './responses.ts'
import {
  auditName,
  isRunRow,
  originOf,
  formatAge,
  formatAgo,
  formatEta,
  formatLiveness,
  formatRunStatus,
  formatRunId,
  parseTime,
  formatSource,
  barOf,
  formatDoneOfTotal,
} from './format.ts'
import { NOTHING_DONE } from './history.ts'
import { roundRate } from './pace.ts'
import type { ListedRun, Worker as WorkerView } from './records.ts'
import { formatChange, formatReason } from './verdict.ts'
import type { Verdict as VerdictView } from './results.ts'
import { NO_WORKERS, processColumns, workerColumn } from './workers.ts'

/** A list that is sorted, filtered and opened row by row: a view of `top`. */
export type BrowseList = {
  /** Singular and plural. */
  readonly noun: readonly [string, string]
  /** Shown instead of a list without rows. */
  readonly empty: string
  readonly columns: readonly (Column & FromWidth)[]
  readonly orders: readonly string[]
  readonly rows: readonly BrowseRow[]
}

/** `from`: shown only on a terminal of at least this many columns, so that names are not cut for it. */
type FromWidth = { readonly from?: number }

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

/** How a list shows its items. `orders`: what each order sorts by, ascending. */
type BrowseSpec<T> = Pick<BrowseList, 'noun' | 'empty'> & {
  readonly columns: readonly (ColumnOf<T> & FromWidth)[]
  readonly orders: Readonly<Record<string, (item: T) => string | number>>
  readonly row: (item: T) => Pick<BrowseRow, 'id' | 'run' | 'about'>
}

function browse<T>(
  items: readonly T[],
  { noun, empty, columns, orders, row }: BrowseSpec<T>,
): BrowseList {
  return {
    noun,
    empty,
    columns,
    orders: Object.keys(orders),
    rows: items.map((item) => ({
      ...row(item),
      cells: columns.map(({ cell }) => cell(item)),
      ranks: Object.values(orders).map((rank) => rank(item)),
    })),
  }
}

export function browseRuns(runs: readonly ListedRun[], now: Millis): BrowseList {
  return browse(runs.toSorted(byActivity), {
    noun: ['run', 'runs'],
    empty:
      'Nothing has run yet. See it work with `unstuck demo`, or start `unstuck work crawl.ts`.',
    columns: [
      left('RUN', ({ id, origin }) => formatRunId(id, origin)),
      flex('SOURCE', ({ source, origin }) => formatSource(source, origin)),
      left('STATUS', formatStatus),
      right('DONE', formatDoneOfTotal),
      left('', barOf, 3),
      {
        ...right('PAGES/MIN', ({ pages, pace }) =>
          pace && pages ? String(roundRate(pace.pagesPerMinute)) : '',
        ),
        from: 100,
      },
      {
        ...right('LEFT', ({ pace }) => (pace?.etaSeconds ? formatEta(pace.etaSeconds) : '')),
        from: 100,
      },
      right('ITEMS', ({ extracted }) => String(extracted), 2),
      right('ACTIVITY', ({ lastActivityAt }) => formatAgo(parseTime(lastActivityAt), now), 1),
    ],
    orders: {
      attention: ({ status, health }) =>
        isLive(status) && health !== null ? HEALTH_STATES.indexOf(health) : HEALTH_STATES.length,
      source: ({ source }) => source,
      activity: ({ lastActivityAt }) => -(parseTime(lastActivityAt) ?? 0),
      'share done': ({ done, total }) => (total ? (done ?? 0) / total : 0),
      age: ({ createdAt }) => createdAt ?? '',
    },
    row: ({ id, status, because, error }) => {
      const ended = [status === 'abandoned' ? formatRunStatus(status).text : null, error]
      return {
        id,
        run: id,
        about: because ?? ended.filter((part) => part !== null).join(': '),
      }
    },
  })
}

/** Newest first, also among runs of equal rank. */
function byActivity(a: ListedRun, b: ListedRun): number {
  return (parseTime(b.lastActivityAt) ?? 0) - (parseTime(a.lastActivityAt) ?? 0)
}

/** Its health where it is stuck. The long status is shown below the list: it would cut all other columns. */
function formatStatus({ status, health }: ListedRun): Span {
  if (health !== null && ['orphaned', 'stalled', 'dead'].includes(health))
    return { text: health, style: 'bad' }
  const span = formatRunStatus(status)
  return status === 'abandoned' ? { ...span, text: 'cleaned' } : span
}

const LIVENESS_ORDER = ['gone', 'silent', 'stalled', 'unknown', 'present']

export function browseWorkers(workers: readonly WorkerView[], now: Millis): BrowseList {
  return browse(workers, {
    noun: ['worker', 'workers'],
    empty: NO_WORKERS,
    columns: [
      workerColumn(workers),
      flex('SOURCE', ({ source }) => source),
      ...processColumns(workers),
      left('LIVENESS', ({ liveness }) => formatLiveness(liveness)),
      right('TARGETS', ({ targets }) => String(targets), 1),
      right(
        'UP',
        ({ startedAt }) => (startedAt === null ? '–' : formatAge(now - Date.parse(startedAt))),
        2,
      ),
      right('HEARTBEAT', ({ lastHeartbeatAt }) => formatAgo(parseTime(lastHeartbeatAt), now)),
    ],
    orders: {
      liveness: ({ liveness }) => LIVENESS_ORDER.indexOf(liveness),
      heartbeat: ({ lastHeartbeatAt }) => lastHeartbeatAt ?? '',
      targets: ({ targets }) => -targets,
      source: ({ source }) => source,
      process: ({ host, pid }) => `${host} ${pid}`,
    },
    row: ({ id, because }) => ({ id, run: null, about: because }),
  })
}

export function browseVerdicts(verdicts: readonly VerdictView[]): BrowseList {
  const isPlanned = ({ outcome }: VerdictView): boolean => outcome === 'planned'
  return browse(verdicts, {
    noun: ['verdict', 'verdicts'],
    empty: 'Nothing to recover: no worker with a claim is gone, silent or stalled.',
    columns: [
      left('ACTION', (one) => ({ text: one.action, style: isPlanned(one) ? 'strong' : 'warn' })),
      left('SUBJECT', ({ key, subject: { kind, name } }) =>
        kind === 'target' ? `target ${key ?? name}` : `run ${name}`,
      ),
      flex('SOURCE', ({ source }) => source),
      left('CHANGE', formatChange, 2),
      left('LIVENESS', ({ liveness }) => formatLiveness(liveness), 1),
      left('KEY', ({ outcome, action }) => {
        if (outcome === 'planned') return 'R'
        return outcome === 'needs-attention' && action === 'abandon' ? 'C' : ''
      }),
    ],
    orders: {
      outcome: (verdict) => Number(!isPlanned(verdict)),
      source: ({ source }) => source,
      action: ({ action }) => action,
    },
    row: (verdict) => ({
      id: verdict.target ?? verdict.run,
      run: verdict.run,
      about: formatReason(verdict),
    }),
  })
}

export function browseDeadLetters(
  { groups, isPartial }: DeadLetterGroups,
  now: Millis,
): BrowseList {
  return browse(groups, {
    noun: ['kind of error', 'kinds of errors'],
    empty: 'No target failed, is stuck or parked.',
    columns: [
      right('TARGETS', ({ count }) => `${isPartial ? 'at least ' : ''}${count}`),
      left('STATUS', ({ statuses }) => formatStatuses(statuses), 2),
      flex('ERROR', ({ error }) => error),
      flex('SOURCES', ({ sources }) => sources.join(', '), 3),
      right('LAST', ({ lastAt }) => formatAgo(Date.parse(lastAt), now), 1),
    ],
    orders: {
      count: ({ count }) => -count,
      'last seen': ({ lastAt }) => -Date.parse(lastAt),
      error: ({ error }) => error,
    },
    row: ({ fingerprint, error }) => ({ id: fingerprint, run: null, about: error }),
  })
}

/** `29 failed, 1 stuck`; without the number if there is only one status. */
function formatStatuses(statuses: DeadLetterGroup['statuses']): Span {
  const counts = Object.entries(statuses).filter(([, count]) => count > 0)
  const isParked = counts.every(([status]) => status === 'parked')
  const parts = counts.map(([name, count]) => (counts.length === 1 ? name : `${count} ${name}`))
  return { text: parts.join(', '), style: isParked ? 'warn' : 'bad' }
}

/** A row of your own by its own id. */
function auditCell(entry: AuditEntry): string {
  const { run, target, key, before } = entry
  if (run === null) return 'source'
  const row = rowName(originOf(before))
  if (target === null || isRunRow(before)) return auditName(entry)
  return row ?? key ?? auditName(entry)
}

export function browseHistory(entries: readonly AuditEntry[], now: Millis): BrowseList {
  return browse(entries, {
    noun: ['entry', 'entries'],
    empty: NOTHING_DONE,
    columns: [
      right('WHEN', ({ at }) => ({ text: formatAgo(at, now), style: 'dim' })),
      left('ACTION', ({ action }) => ({ text: action, style: 'strong' })),
      {
        ...flex('SUBJECT', auditCell),
        min: longest(entries.filter(({ before }) => originOf(before)).map(auditCell)),
      },
      flex('SOURCE', ({ source }) => source),
      flex('BY', ({ actor }) => actor, 1),
    ],
    orders: {
      time: ({ id }) => -id,
      source: ({ source }) => source,
      action: ({ action }) => action,
    },
    row: ({ id, run, because }) => ({ id: String(id), run, about: because }),
  })
}
