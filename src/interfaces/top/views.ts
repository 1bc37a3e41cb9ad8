import { shortId, type RunId } from '../../core/model/id.ts'
import { isLive, type AdoptedRef, type RunStatus } from '../../core/model/run.ts'
import { humanizeDuration, type Millis } from '../../core/model/time.ts'
import type { Verdict } from '../../core/model/verdict.ts'
import type { AuditEntry } from '../../core/store/store.ts'
import type { DeadLetterGroup } from '../../presenters/dead-letters.ts'
import type { ListedRun } from '../../presenters/runs.ts'
import type { Cell, Column, Span } from '../../lib/text/sentence.ts'
import {
  formatAgo,
  formatAge,
  progressBar,
  formatRunStatus,
  formatSource,
  formatProcessCell,
  formatLiveness,
} from '../../presenters/format.ts'
import type { WorkerView } from '../../presenters/view.ts'
import type { Snapshot } from './snapshot.ts'
import type { ListPosition, View } from './state.ts'

/** One line of a list. */
export type Row = {
  readonly id: string
  /** The run it is about, for keys that act on one; null: none. */
  readonly run: RunId | null
  readonly cells: readonly Cell[]
  /** Shown below the list while the row is chosen. */
  readonly about: string
}

/** `from`: only on a terminal of at least so many columns, so that names are not cut for it. */
type WideColumn = Column & { readonly from?: number }

export type List = {
  readonly columns: readonly WideColumn[]
  /** Those that pass the filter, in the chosen order. */
  readonly rows: readonly Row[]
  /** All there are. */
  readonly total: number
  readonly order: string
  /** What one of them is called, and several. */
  readonly noun: readonly [string, string]
  /** Said when there is nothing to list. */
  readonly empty: string
}

/** What a view is made of, whatever it lists. */
type ViewSpec<T> = {
  readonly columns: readonly WideColumn[]
  readonly noun: readonly [string, string]
  readonly empty: string
  readonly orders: readonly { readonly name: string; compare(a: T, b: T): number }[]
  row(one: T, now: Millis): Row
}

const TITLES: Readonly<Record<View, string>> = {
  runs: 'Runs',
  workers: 'Workers',
  recovery: 'Recovery',
  letters: 'Dead letters',
  history: 'History',
}

export function titleOf(view: View): string {
  return TITLES[view]
}

/** What the view in front lists, as the person wants to see it. */
export function buildList({ viewData, now }: Snapshot, position: ListPosition): List {
  switch (viewData.view) {
    case 'runs':
      return arrangeRows(RUNS, viewData.runs, position, now)
    case 'workers':
      return arrangeRows(WORKERS, viewData.workers, position, now)
    case 'recovery': {
      const { active, planned, needsAttention } = viewData.recovery
      const rows = new Map(active.map(({ run }) => [run.id, run.adopted]))
      const assessed = (verdict: Verdict, isTheirs: boolean): ListedVerdict => {
        const row = rows.get(verdict.run)
        // A whole table is told by its source, and its rows by their ids.
        return { verdict, needsAttention: isTheirs, row: row && row.key !== '' ? row : null }
      }
      const both = [
        ...planned.map((verdict) => assessed(verdict, false)),
        ...needsAttention.map((verdict) => assessed(verdict, true)),
      ]
      return arrangeRows(VERDICTS, both, position, now)
    }
    case 'letters':
      return arrangeRows(deadLetterSpec(viewData.isPartial), viewData.groups, position, now)
    case 'history':
      return arrangeRows(HISTORY, viewData.entries, position, now)
  }
}

function arrangeRows<T>(
  spec: ViewSpec<T>,
  all: readonly T[],
  position: ListPosition,
  now: Millis,
): List {
  const order = spec.orders[position.sort % spec.orders.length]!
  const terms = position.filter.toLowerCase().split(/\s+/).filter(Boolean)
  const rows = all
    .toSorted((a, b) => order.compare(a, b))
    .map((one) => spec.row(one, now))
    .filter((row) => matches(row, terms))
  return { ...spec, rows, total: all.length, order: order.name }
}

/** Every word must be somewhere in what is shown of it. */
function matches({ id, cells, about }: Row, terms: readonly string[]): boolean {
  if (terms.length === 0) return true
  const texts = cells.map((cell) => (typeof cell === 'string' ? cell : cell.text))
  const said = [id, ...texts, about].join(' ').toLowerCase()
  return terms.every((word) => said.includes(word))
}

const compareBy =
  <T>(read: (one: T) => string | number) =>
  (a: T, b: T): number => {
    const [left, right] = [read(a), read(b)]
    return left < right ? -1 : left > right ? 1 : 0
  }

const HEALTH_RANK = ['orphaned', 'stalled', 'dead', 'interrupted', 'waiting', 'healthy']
const STUCK = ['orphaned', 'stalled', 'dead']

const RUNS: ViewSpec<ListedRun> = {
  noun: ['run', 'runs'],
  columns: [
    { header: 'RUN' },
    { header: 'SOURCE', flex: true },
    { header: 'STATUS' },
    { header: 'DONE', align: 'right' },
    { header: '', optional: 3 },
    { header: 'PAGES/MIN', align: 'right', from: 100 },
    { header: 'LEFT', align: 'right', from: 100 },
    { header: 'ITEMS', align: 'right', optional: 2 },
    { header: 'LAST SIGN', align: 'right', optional: 1 },
  ],
  empty: 'Nothing has run yet. See it work with `unstuck demo`, or start `unstuck work crawl.ts`.',
  orders: [
    // The newest of those that have ended come right after the live ones.
    {
      name: 'attention',
      compare: (a, b) => compareBy(rankOf)(a, b) || compareBy(lastActivity)(b, a),
    },
    { name: 'source', compare: compareBy(({ source }) => source) },
    { name: 'last sign', compare: (a, b) => compareBy(lastActivity)(b, a) },
    { name: 'share done', compare: compareBy(({ done, total }) => (total > 0 ? done / total : 0)) },
    { name: 'age', compare: compareBy(({ createdAt }) => createdAt) },
  ],
  row(run, now) {
    const { id, status, health, done, total, pace } = run
    const plus = run.planned || run.kind === 'single' ? '' : '+'
    return {
      id,
      run: id,
      cells: [
        shortId(id),
        formatSource(run),
        health !== null && STUCK.includes(health)
          ? { text: health, style: 'bad' }
          : shortStatus(status),
        `${done}/${total}${plus}`,
        progressBar(done, total),
        pace ? String(Math.round(pace.pagesPerMinute)) : '',
        pace?.etaSeconds ? formatEta(pace.etaSeconds) : '',
        String(run.extracted),
        formatAgo(Date.parse(run.lastActivityAt), now),
      ],
      about: describeRun(run),
    }
  },
}

/** All columns would suffer from the one long word; it stands below the list instead. */
function shortStatus(status: RunStatus): Span {
  const said = formatRunStatus(status)
  return status === 'abandoned' ? { ...said, text: 'cleaned' } : said
}

function describeRun({ because, error, status }: ListedRun): string {
  if (because !== null) return because
  const said = [status === 'abandoned' ? formatRunStatus(status).text : null, error]
  return said.filter((one) => one !== null).join(': ')
}

function rankOf({ health, status }: ListedRun): number {
  return isLive(status) && health !== null ? HEALTH_RANK.indexOf(health) : HEALTH_RANK.length
}

function lastActivity({ lastActivityAt }: ListedRun): string {
  return lastActivityAt
}

/** `8–11 min`: a range, since nobody knows better. */
function formatEta({ from, to }: { from: number; to: number }): string {
  const [low, high] = [humanizeDuration(from * 1_000), humanizeDuration(to * 1_000)]
  const [, unit] = high.split(' ')
  return low === high
    ? low
    : low.endsWith(` ${unit}`)
      ? `${low.split(' ')[0]}–${high}`
      : `${low} – ${high}`
}

const LIVENESS_RANK = ['gone', 'silent', 'stalled', 'unknown', 'present']

const WORKERS: ViewSpec<WorkerView> = {
  noun: ['worker', 'workers'],
  columns: [
    { header: 'WORKER' },
    { header: 'SOURCE', flex: true },
    { header: 'PROCESS', flex: true, optional: 3 },
    { header: 'SIGN' },
    { header: 'TARGETS', align: 'right', optional: 1 },
    { header: 'UP', align: 'right', optional: 2 },
    { header: 'LAST BEAT', align: 'right' },
  ],
  empty: 'Nobody is known to be at work. `unstuck work crawl.ts` starts a worker.',
  orders: [
    { name: 'liveness', compare: compareBy(({ liveness }) => LIVENESS_RANK.indexOf(liveness)) },
    { name: 'last beat', compare: compareBy(({ lastHeartbeatAt }) => lastHeartbeatAt) },
    { name: 'targets', compare: (a, b) => b.targets - a.targets },
    { name: 'source', compare: compareBy(({ source }) => source) },
    { name: 'process', compare: compareBy(({ host, pid }) => `${host} ${pid}`) },
  ],
  row: (worker, now) => ({
    id: worker.id,
    run: null,
    cells: [
      // The id of who has a row of a table of the user's own is made up.
      worker.label === null ? shortId(worker.id) : '',
      worker.source,
      formatProcessCell(worker),
      formatLiveness(worker.liveness),
      String(worker.targets),
      formatAge(now - Date.parse(worker.startedAt)),
      formatAgo(Date.parse(worker.lastHeartbeatAt), now),
    ],
    about: worker.because,
  }),
}

type ListedVerdict = {
  readonly verdict: Verdict
  readonly needsAttention: boolean
  /** The row of a table of the user's own that the run is; null: it is none. */
  readonly row: AdoptedRef | null
}

const VERDICTS: ViewSpec<ListedVerdict> = {
  noun: ['verdict', 'verdicts'],
  columns: [
    { header: 'ACTION' },
    { header: 'ABOUT' },
    { header: 'SOURCE', flex: true },
    { header: 'CHANGE', optional: 2 },
    { header: 'SIGN', optional: 1 },
    { header: 'KEY' },
  ],
  empty: 'Nothing to recover: nobody who held something is gone, silent or stalled.',
  orders: [
    { name: 'who', compare: compareBy(({ needsAttention }) => Number(needsAttention)) },
    { name: 'source', compare: compareBy(({ verdict }) => verdict.source) },
    { name: 'action', compare: compareBy(({ verdict }) => verdict.action) },
  ],
  row: ({ verdict, needsAttention, row }) => {
    const { action, run, target, source, from, to, liveness, because } = verdict
    return {
      id: target ?? run,
      run,
      cells: [
        { text: action, style: needsAttention ? 'warn' : 'strong' },
        row === null && target !== null ? `target ${shortId(target)}` : `run ${shortId(run)}`,
        formatSource({ source, adopted: row }),
        // Which word a row gets is its table's affair.
        from === to || row !== null ? '' : `${from.replace('_', ' ')} → ${to}`,
        formatLiveness(liveness),
        needsAttention ? (action === 'abandon' ? 'C' : '') : 'R',
      ],
      about: because,
    }
  },
}

/** `isPartial`: there are more than were looked at. */
const deadLetterSpec = (isPartial: boolean): ViewSpec<DeadLetterGroup> => ({
  noun: ['kind of error', 'kinds of errors'],
  columns: [
    { header: 'TARGETS', align: 'right' },
    { header: 'STATUS', optional: 2 },
    { header: 'ERROR', flex: true },
    { header: 'SOURCES', flex: true, optional: 3 },
    { header: 'LAST', align: 'right', optional: 1 },
  ],
  empty: 'No target failed, is held or parked.',
  orders: [
    { name: 'count', compare: (a, b) => b.count - a.count },
    {
      name: 'last seen',
      compare: (a, b) => compareBy<DeadLetterGroup>(({ lastAt }) => lastAt)(b, a),
    },
    { name: 'error', compare: compareBy(({ error }) => error) },
  ],
  row: ({ fingerprint, count, statuses, error, sources, lastAt }, now) => ({
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
  }),
})

/** `29 failed, 1 stuck`; the number is left out where there is only one kind. */
function formatStatuses(statuses: DeadLetterGroup['statuses']): Span {
  const kinds = Object.entries(statuses).filter(([, count]) => count > 0)
  const isParked = kinds.every(([kind]) => kind === 'parked')
  const words = kinds.map(([kind, count]) => (kinds.length === 1 ? kind : `${count} ${kind}`))
  return { text: words.join(', '), style: isParked ? 'warn' : 'bad' }
}

const HISTORY: ViewSpec<AuditEntry> = {
  noun: ['entry', 'entries'],
  columns: [
    { header: 'WHEN', align: 'right' },
    { header: 'ACTION' },
    { header: 'ABOUT' },
    { header: 'SOURCE', flex: true },
    { header: 'BY', flex: true, optional: 1 },
  ],
  empty: 'Nothing was done: no recovery, no cleaning, no word of a person.',
  orders: [
    { name: 'time', compare: (a, b) => b.id - a.id },
    { name: 'source', compare: compareBy(({ source }) => source) },
    { name: 'action', compare: compareBy(({ action }) => action) },
  ],
  row: ({ id, at, action, run, target, source, actor, because }, now) => ({
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
  }),
}
