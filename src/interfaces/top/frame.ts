import { stripVTControlCharacters, styleText } from 'node:util'
import { TextWriter } from '../../lib/terminal/text-writer.ts'
import { plainText, type Cell, type Section } from '../../lib/text/sentence.ts'
import { pad, truncate, widthOf } from '../../lib/terminal/width.ts'
import type { BrowseList, BrowseRow } from '../../presenters/browse.ts'
import { plural } from '../../presenters/format.ts'
import { ACTION_KEYS, READ_ONLY } from './actions.ts'
import { VIEWS, type Snapshot, type View } from './snapshot.ts'
import type { ListPosition, TopState } from './state.ts'

export type Size = { readonly columns: number; readonly rows: number }

/** What one frame has room for; keys move within it. */
export type Layout = {
  readonly summary: readonly string[]
  /** Lines between head and foot. */
  readonly height: number
  /** The list of the current view; null until it was read. */
  readonly list: SortedList | null
  /** The row that keys act on. */
  readonly selected: BrowseRow | undefined
  /** All lines of a text that is scrolled; null where a list is shown. */
  readonly text: readonly string[] | null
}

/** A list in the selected order. */
type SortedList = BrowseList & {
  /** Rows before the filter. */
  readonly total: number
  readonly order: string
}

/** Title, tabs, selected row, keys. */
const FIXED_LINES = 4

export function layoutOf(
  state: TopState,
  snapshot: Snapshot | null,
  { columns, rows }: Size,
  colour: boolean,
): Layout {
  const { screen, view, positions } = state
  const summary = drawSummary(snapshot, columns, rows, colour)
  const list = snapshot?.view === view ? sortList(snapshot.list, positions[view]) : null
  const sections = sectionsOf(state, snapshot)
  const selected =
    screen.kind === 'detail'
      ? list?.rows.find(({ id }) => id === screen.row)
      : list?.rows[visibleWindow(positions[view], list.rows, 1).index]
  return {
    summary,
    height: Math.max(1, rows - FIXED_LINES - summary.length),
    list,
    selected,
    text: sections && draw(columns, colour, (writer) => writer.sections(sections)),
  }
}

function sortList(list: BrowseList, { filter, sort }: ListPosition): SortedList {
  const order = sort % list.orders.length
  const terms = filter.toLowerCase().split(/\s+/).filter(Boolean)
  const rows = list.rows
    .toSorted((a, b) => compare(a.ranks[order]!, b.ranks[order]!))
    .filter((row) => matches(row, terms))
  return { ...list, rows, total: list.rows.length, order: list.orders[order]! }
}

function compare(a: string | number, b: string | number): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** Every term must occur in the text of the row. */
function matches({ id, cells, about }: BrowseRow, terms: readonly string[]): boolean {
  const text = `${id} ${cells.map((cell) => plainText([cell])).join(' ')} ${about}`.toLowerCase()
  return terms.every((term) => text.includes(term))
}

/** The part of a list that fits, with the selected row in it. */
export function visibleWindow(
  { row, top }: ListPosition,
  rows: readonly BrowseRow[],
  height: number,
): { index: number; top: number } {
  const index = Math.max(
    0,
    rows.findIndex(({ id }) => id === row),
  )
  const shown = Math.max(1, height - 1)
  const last = Math.max(0, rows.length - shown)
  return { index, top: Math.min(last, Math.max(Math.min(top, index), index - shown + 1)) }
}

/** Draws a line for each row of the terminal, none wider than it. */
export function drawTop(
  state: TopState,
  snapshot: Snapshot | null,
  size: Size,
  colour: boolean,
): string[] {
  const { columns, rows } = size
  const layout = layoutOf(state, snapshot, size, colour)
  const { summary, height, list, text } = layout
  const scroll = 'scroll' in state.screen ? state.screen.scroll : 0
  const body = text
    ? text.slice(scroll, scroll + height)
    : list
      ? drawList(list, state.positions[state.view], { columns, rows: height }, colour)
      : []
  const line = (cells: readonly Cell[]) => draw(columns, colour, (writer) => writer.line(...cells))
  return [
    ...line(titleCells(state, snapshot, list)),
    ...summary,
    ...line(tabCells(state.view, columns)),
    ...Array.from({ length: height }, (_, n) => body[n] ?? ''),
    ...line(statusCells(state, layout, scroll)),
    ...line(keyCells(availableKeys(state), columns)),
  ]
    .slice(0, rows)
    .map((drawn) => fitLine(drawn, columns))
}

/** Returns the lines that are written. */
function draw(columns: number, colour: boolean, write: (writer: TextWriter) => void): string[] {
  const writer = new TextWriter(columns, colour)
  write(writer)
  return writer.toString().split('\n').slice(0, -1)
}

function titleCells(
  { view, positions, screen, readonly }: TopState,
  snapshot: Snapshot | null,
  list: SortedList | null,
): Cell[] {
  const { filter } = positions[view]
  const facts = [
    snapshot ? `${new Date(snapshot.now).toISOString().slice(11, 19)} UTC` : 'loading …',
    ...(list ? [describeCount(list), `sort: ${list.order}`] : []),
    ...(filter !== '' && screen.kind !== 'filter' ? [`only “${filter}”`] : []),
    ...(readonly ? ['read-only'] : []),
  ]
  return [
    { text: 'unstuck top', style: 'strong' },
    { text: ` · ${facts.join(' · ')}`, style: 'dim' },
  ]
}

function describeCount({ rows, total, noun }: SortedList): string {
  const all = plural(total, ...noun)
  return rows.length === total ? all : `${rows.length} of ${all}`
}

/** It gets more lines on a higher terminal. */
function drawSummary(
  snapshot: Snapshot | null,
  columns: number,
  rows: number,
  colour: boolean,
): string[] {
  if (!snapshot) return []
  const { summary, style } = snapshot
  const max = rows >= 24 ? 3 : rows >= 16 ? 2 : 1
  const lines = draw(columns, colour, (writer) => writer.paragraph({ text: summary, style }))
  if (lines.length <= max) return lines
  // The cut line has an ellipsis and no colour.
  const last = stripVTControlCharacters(lines[max - 1]!)
  return [...lines.slice(0, max - 1), truncate(`${last} …`, columns)]
}

const TITLES: Readonly<Record<View, string>> = {
  runs: 'Runs',
  workers: 'Workers',
  recovery: 'Recovery',
  letters: 'Dead letters',
  history: 'History',
}

/** The current view is in brackets, so that it shows without colour too. */
function tabCells(view: View, columns: number): Cell[] {
  return VIEWS.map((one, n) => {
    const title = columns < 60 && one !== view ? '' : ` ${TITLES[one]}`
    const text = `${n + 1}${title}`
    return one === view
      ? { text: `[${text}] `, style: 'strong' }
      : { text: ` ${text}  `, style: 'dim' }
  })
}

const SELECTED_MARK = '> '
const UNSELECTED_MARK = '  '

function drawList(list: SortedList, position: ListPosition, size: Size, colour: boolean): string[] {
  const { index, top } = visibleWindow(position, list.rows, size.rows)
  const shown = list.rows.slice(top, top + size.rows - 1)
  const isWideEnough = list.columns.map(({ from = 0 }) => size.columns >= from)
  const none =
    list.total === 0
      ? list.empty
      : `None of ${list.total} contains “${position.filter}”. Esc shows all.`
  const lines = draw(size.columns - SELECTED_MARK.length, colour, (writer) => {
    if (shown.length === 0) return writer.paragraph(none)
    writer.table(
      list.columns.filter((_, n) => isWideEnough[n]),
      shown.map(({ cells }) => cells.filter((_, n) => isWideEnough[n])),
    )
  })
  const selected = shown.length === 0 ? -1 : 1 + index - top
  return lines.map((line, n) =>
    n === selected ? highlight(line, size.columns, colour) : `${UNSELECTED_MARK}${line}`,
  )
}

/** The mark shows the selection without colour. */
function highlight(line: string, columns: number, colour: boolean): string {
  const plain = pad(`${SELECTED_MARK}${stripVTControlCharacters(line)}`, columns)
  return colour ? styleText('inverse', plain, { validateStream: false }) : plain.trimEnd()
}

/** The result of the last key, else the question, else what the selected row is about. */
function statusCells(
  { message, busy, screen, error, positions, view }: TopState,
  { text, height, selected }: Layout,
  scroll: number,
): Cell[] {
  if (busy !== null) return [{ text: busy, style: 'warn' }]
  if (message) return [message]
  if (error !== null) return [{ text: error, style: 'bad' }]
  if (screen.kind === 'filter')
    return ['/', { text: `${positions[view].filter}_`, style: 'strong' }]
  if (screen.kind === 'plan')
    return [{ text: screen.plan.question ?? 'Nothing to apply.', style: 'strong' }]
  const about = text ? describeScroll(scroll, height, text.length) : (selected?.about ?? '')
  return [{ text: about, style: 'dim' }]
}

/** Which lines of a text are shown; empty if all are. */
function describeScroll(scroll: number, height: number, all: number): string {
  const to = Math.min(all, scroll + height)
  return all > height ? `lines ${scroll + 1} – ${to} of ${all}` : ''
}

/** Keys with what they do, the most important first. */
function availableKeys({ screen, view, readonly }: TopState): string[] {
  const back = ['Esc back', '↑↓ scroll']
  const actions = ACTION_KEYS.filter(({ views }) => !readonly && views.includes(view)).map(
    ({ key, label }) => `${key} ${label}`,
  )
  switch (screen.kind) {
    case 'filter':
      return ['Enter keep', 'Esc drop']
    case 'plan':
      return screen.plan.question === null ? back : ['y apply', 'n cancel', '↑↓ scroll']
    case 'help':
      return back
    case 'detail':
      return [...back, '? help', ...actions]
    case 'list':
      return ['? help', 'q quit', '↵ open', '/ filter', 's sort', ...actions]
  }
}

/** Only whole keys. */
function keyCells(keys: readonly string[], columns: number): Cell[] {
  let left = columns
  return keys.flatMap((help, n): Cell[] => {
    const gap = n === 0 ? '' : '  '
    left -= widthOf(`${gap}${help}`)
    const [key = '', does = ''] = help.split(' ')
    return left >= 0 ? [gap, { text: key, style: 'strong' }, ` ${does}`] : []
  })
}

/** Cuts words that are too long to wrap, and lines that a very narrow terminal has no room for. */
function fitLine(line: string, columns: number): string {
  const plain = stripVTControlCharacters(line)
  return widthOf(plain) <= columns ? line : truncate(plain, columns)
}

const LOADING: Section = { heading: null, sentences: [[{ text: 'Loading …', style: 'dim' }]] }

function sectionsOf(
  { screen, readonly }: TopState,
  snapshot: Snapshot | null,
): readonly Section[] | null {
  switch (screen.kind) {
    case 'list':
    case 'filter':
      return null
    case 'help':
      return helpSections(readonly, snapshot?.where ?? null)
    case 'plan':
      return screen.plan.sections
    case 'detail':
      return snapshot?.detail?.row === screen.row ? snapshot.detail.sections : [LOADING]
  }
}

const NAVIGATION_KEYS: readonly [string, string][] = [
  ['1 – 5, Tab', 'runs, workers, recovery, dead letters, history'],
  ['↑ ↓, j k', 'move; PgUp PgDn by a page, Home End to the ends'],
  ['Enter', 'open the selected row; Esc closes it'],
  ['/', 'filter: every word must occur in a row; Enter keeps the filter, Esc drops it'],
  ['s', 'next order; the first line shows which one'],
  ['q, Ctrl-C', 'quit; Ctrl-Z suspends, `fg` continues'],
]

function helpSections(readonly: boolean, where: string | null): Section[] {
  const keys = (all: readonly (readonly [string, string])[]): Section['sentences'] =>
    all.map(([key, meaning]) => ['- ', { text: key, style: 'strong' }, `: ${meaning}`])
  const actions = keys(ACTION_KEYS.map(({ key, help }) => [key, help]))
  return [
    { heading: 'Navigate', sentences: keys(NAVIGATION_KEYS) },
    {
      heading: 'Act',
      sentences: readonly
        ? [[READ_ONLY]]
        : [...actions, ['Each shows a preview, and applies it only after y.']],
    },
    ...(where === null
      ? []
      : [
          {
            heading: null,
            sentences: [[{ text: `The database is ${where}.`, style: 'dim' as const }]],
          },
        ]),
  ]
}
