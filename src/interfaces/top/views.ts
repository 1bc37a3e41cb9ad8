import { shortId, type RunId } from '../../core/model/id.ts'
import { isLive, type AdoptedRef, type RunStatus } from '../../core/model/run.ts'
import { inWords, type Millis } from '../../core/model/time.ts'
import type { Verdict } from '../../core/model/verdict.ts'
import type { AuditEntry } from '../../core/store/store.ts'
import type { LetterGroup } from '../../presenters/dead-letters.ts'
import type { ListedRun } from '../../presenters/runs.ts'
import type { Cell } from '../../lib/terminal/text-writer.ts'
import type { Column, Span } from '../../lib/terminal/table.ts'
import { ago, age, bar, runStatus, sourceOf, whoCell, workerSign } from '../../presenters/format.ts'
import type { WorkerView } from '../../presenters/view.ts'
import type { Look } from './snapshot.ts'
import type { Place, View } from './state.ts'

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
type Listed<T> = {
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
export function listOf({ seen, now }: Look, place: Place): List {
  switch (seen.view) {
    case 'runs':
      return arrange(RUNS, seen.runs, place, now)
    case 'workers':
      return arrange(WORKERS, seen.workers, place, now)
    case 'recovery': {
      const { active, deeds, theirs } = seen.recovery
      const rows = new Map(active.map(({ run }) => [run.id, run.adopted]))
      const judged = (verdict: Verdict, isTheirs: boolean): Judged => {
        const row = rows.get(verdict.run)
        // A whole table is told by its source, and its rows by their ids.
        return { verdict, isTheirs, row: row && row.key !== '' ? row : null }
      }
      const both = [
        ...deeds.map((verdict) => judged(verdict, false)),
        ...theirs.map((verdict) => judged(verdict, true)),
      ]
      return arrange(VERDICTS, both, place, now)
    }
    case 'letters':
      return arrange(lettersIn(seen.isPartial), seen.groups, place, now)
    case 'history':
      return arrange(TRAIL, seen.entries, place, now)
  }
}

function arrange<T>(listed: Listed<T>, all: readonly T[], place: Place, now: Millis): List {
  const order = listed.orders[place.sort % listed.orders.length]!
  const wanted = place.filter.toLowerCase().split(/\s+/).filter(Boolean)
  const rows = all
    .toSorted((a, b) => order.compare(a, b))
    .map((one) => listed.row(one, now))
    .filter((row) => fits(row, wanted))
  return { ...listed, rows, total: all.length, order: order.name }
}

/** Every word must be somewhere in what is shown of it. */
function fits({ id, cells, about }: Row, wanted: readonly string[]): boolean {
  if (wanted.length === 0) return true
  const texts = cells.map((cell) => (typeof cell === 'string' ? cell : cell.text))
  const said = [id, ...texts, about].join(' ').toLowerCase()
  return wanted.every((word) => said.includes(word))
}

const by =
  <T>(read: (one: T) => string | number) =>
  (a: T, b: T): number => {
    const [left, right] = [read(a), read(b)]
    return left < right ? -1 : left > right ? 1 : 0
  }

const HEALTH_RANK = ['orphaned', 'stalled', 'dead', 'interrupted', 'waiting', 'healthy']
const STUCK = ['orphaned', 'stalled', 'dead']

const RUNS: Listed<ListedRun> = {
  noun: ['run', 'runs'],
  columns: [
    { head: 'RUN' },
    { head: 'SOURCE', flex: true },
    { head: 'STATUS' },
    { head: 'DONE', align: 'right' },
    { head: '', optional: 3 },
    { head: 'PAGES/MIN', align: 'right', from: 100 },
    { head: 'LEFT', align: 'right', from: 100 },
    { head: 'ITEMS', align: 'right', optional: 2 },
    { head: 'LAST SIGN', align: 'right', optional: 1 },
  ],
  empty: 'Nothing has run yet. See it work with `unstuck demo`, or start `unstuck work crawl.ts`.',
  orders: [
    // The newest of those that have ended come right after the live ones.
    {
      name: 'attention',
      compare: (a, b) => by(rankOf)(a, b) || by(lastSign)(b, a),
    },
    { name: 'source', compare: by(({ source }) => source) },
    { name: 'last sign', compare: (a, b) => by(lastSign)(b, a) },
    { name: 'share done', compare: by(({ done, total }) => (total > 0 ? done / total : 0)) },
    { name: 'age', compare: by(({ createdAt }) => createdAt) },
  ],
  row(run, now) {
    const { id, status, health, done, total, pace } = run
    const plus = run.planned || run.kind === 'single' ? '' : '+'
    return {
      id,
      run: id,
      cells: [
        shortId(id),
        sourceOf(run),
        health !== null && STUCK.includes(health) ? { text: health, ink: 'bad' } : inShort(status),
        `${done}/${total}${plus}`,
        bar(done, total),
        pace ? String(Math.round(pace.pagesPerMinute)) : '',
        pace?.etaSeconds ? etaWords(pace.etaSeconds) : '',
        String(run.extracted),
        ago(Date.parse(run.lastActivityAt), now),
      ],
      about: aboutRun(run),
    }
  },
}

/** All columns would suffer from the one long word; it stands below the list instead. */
function inShort(status: RunStatus): Span {
  const said = runStatus(status)
  return status === 'abandoned' ? { ...said, text: 'cleaned' } : said
}

function aboutRun({ because, error, status }: ListedRun): string {
  if (because !== null) return because
  const said = [status === 'abandoned' ? runStatus(status).text : null, error]
  return said.filter((one) => one !== null).join(': ')
}

function rankOf({ health, status }: ListedRun): number {
  return isLive(status) && health !== null ? HEALTH_RANK.indexOf(health) : HEALTH_RANK.length
}

function lastSign({ lastActivityAt }: ListedRun): string {
  return lastActivityAt
}

/** `8–11 min`: a range, since nobody knows better. */
function etaWords({ from, to }: { from: number; to: number }): string {
  const [low, high] = [inWords(from * 1_000), inWords(to * 1_000)]
  const [, unit] = high.split(' ')
  return low === high
    ? low
    : low.endsWith(` ${unit}`)
      ? `${low.split(' ')[0]}–${high}`
      : `${low} – ${high}`
}

const SIGN_RANK = ['gone', 'silent', 'stalled', 'unknown', 'present']

const WORKERS: Listed<WorkerView> = {
  noun: ['worker', 'workers'],
  columns: [
    { head: 'WORKER' },
    { head: 'SOURCE', flex: true },
    { head: 'PROCESS', flex: true, optional: 3 },
    { head: 'SIGN' },
    { head: 'TARGETS', align: 'right', optional: 1 },
    { head: 'UP', align: 'right', optional: 2 },
    { head: 'LAST BEAT', align: 'right' },
  ],
  empty: 'Nobody is known to be at work. `unstuck work crawl.ts` starts a worker.',
  orders: [
    { name: 'sign', compare: by(({ sign }) => SIGN_RANK.indexOf(sign)) },
    { name: 'last beat', compare: by(({ lastBeatAt }) => lastBeatAt) },
    { name: 'targets', compare: (a, b) => b.targets - a.targets },
    { name: 'source', compare: by(({ source }) => source) },
    { name: 'process', compare: by(({ host, pid }) => `${host} ${pid}`) },
  ],
  row: (worker, now) => ({
    id: worker.id,
    run: null,
    cells: [
      // The id of who has a row of a table of the user's own is made up.
      worker.who === null ? shortId(worker.id) : '',
      worker.source,
      whoCell(worker),
      workerSign(worker.sign),
      String(worker.targets),
      age(now - Date.parse(worker.startedAt)),
      ago(Date.parse(worker.lastBeatAt), now),
    ],
    about: worker.because,
  }),
}

type Judged = {
  readonly verdict: Verdict
  readonly isTheirs: boolean
  /** The row of a table of the user's own that the run is; null: it is none. */
  readonly row: AdoptedRef | null
}

const VERDICTS: Listed<Judged> = {
  noun: ['verdict', 'verdicts'],
  columns: [
    { head: 'ACTION' },
    { head: 'ABOUT' },
    { head: 'SOURCE', flex: true },
    { head: 'CHANGE', optional: 2 },
    { head: 'SIGN', optional: 1 },
    { head: 'KEY' },
  ],
  empty: 'Nothing to recover: nobody who held something is gone, silent or stalled.',
  orders: [
    { name: 'who', compare: by(({ isTheirs }) => Number(isTheirs)) },
    { name: 'source', compare: by(({ verdict }) => verdict.source) },
    { name: 'action', compare: by(({ verdict }) => verdict.action) },
  ],
  row: ({ verdict, isTheirs, row }) => {
    const { action, run, target, source, from, to, sign, because } = verdict
    return {
      id: target ?? run,
      run,
      cells: [
        { text: action, ink: isTheirs ? 'warn' : 'strong' },
        row === null && target !== null ? `target ${shortId(target)}` : `run ${shortId(run)}`,
        sourceOf({ source, adopted: row }),
        // Which word a row gets is its table's affair.
        from === to || row !== null ? '' : `${from.replace('_', ' ')} → ${to}`,
        workerSign(sign),
        isTheirs ? (action === 'abandon' ? 'C' : '') : 'R',
      ],
      about: because,
    }
  },
}

/** `isPartial`: there are more than were looked at. */
const lettersIn = (isPartial: boolean): Listed<LetterGroup> => ({
  noun: ['kind of error', 'kinds of errors'],
  columns: [
    { head: 'TARGETS', align: 'right' },
    { head: 'STATUS', optional: 2 },
    { head: 'ERROR', flex: true },
    { head: 'SOURCES', flex: true, optional: 3 },
    { head: 'LAST', align: 'right', optional: 1 },
  ],
  empty: 'No target failed, is held or parked.',
  orders: [
    { name: 'count', compare: (a, b) => b.count - a.count },
    { name: 'last seen', compare: (a, b) => by<LetterGroup>(({ lastAt }) => lastAt)(b, a) },
    { name: 'error', compare: by(({ error }) => error) },
  ],
  row: ({ fingerprint, count, statuses, error, sources, lastAt }, now) => ({
    id: fingerprint,
    run: null,
    cells: [
      `${isPartial ? 'at least ' : ''}${count}`,
      statusWords(statuses),
      error,
      sources.join(', '),
      ago(Date.parse(lastAt), now),
    ],
    about: error,
  }),
})

/** `29 failed, 1 stuck`; the number is left out where there is only one kind. */
function statusWords(statuses: LetterGroup['statuses']): Span {
  const kinds = Object.entries(statuses).filter(([, count]) => count > 0)
  const isParked = kinds.every(([kind]) => kind === 'parked')
  const words = kinds.map(([kind, count]) => (kinds.length === 1 ? kind : `${count} ${kind}`))
  return { text: words.join(', '), ink: isParked ? 'warn' : 'bad' }
}

const TRAIL: Listed<AuditEntry> = {
  noun: ['entry', 'entries'],
  columns: [
    { head: 'WHEN', align: 'right' },
    { head: 'ACTION' },
    { head: 'ABOUT' },
    { head: 'SOURCE', flex: true },
    { head: 'BY', flex: true, optional: 1 },
  ],
  empty: 'Nothing was done: no recovery, no cleaning, no word of a person.',
  orders: [
    { name: 'time', compare: (a, b) => b.id - a.id },
    { name: 'source', compare: by(({ source }) => source) },
    { name: 'action', compare: by(({ action }) => action) },
  ],
  row: ({ id, at, action, run, target, source, actor, because }, now) => ({
    id: String(id),
    run,
    cells: [
      { text: ago(at, now), ink: 'dim' },
      { text: action, ink: 'strong' },
      target === null ? `run ${shortId(run)}` : `target ${shortId(target)}`,
      source,
      actor,
    ],
    about: because,
  }),
}
