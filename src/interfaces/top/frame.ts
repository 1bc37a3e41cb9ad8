import { stripVTControlCharacters, styleText } from 'node:util'
import { TextWriter } from '../../lib/terminal/text-writer.ts'
import { plainText, type Cell, type Section } from '../../lib/text/sentence.ts'
import { pad, truncate, widthOf } from '../../lib/terminal/width.ts'
import type { BrowseList, BrowseRow } from '../../presenters/browse.ts'
import { plural } from '../../presenters/format.ts'
import type { Snapshot } from './snapshot.ts'
import {
  ACTION_KEYS,
  helpSections,
  VIEWS,
  type ListPosition,
  type TopState,
  type View,
} from './state.ts'

export type Size = { readonly columns: number; readonly rows: number }

/** Draws a line for each row of the terminal, none wider than it. */
export function drawTop(
  state: TopState,
  snapshot: Snapshot | null,
  size: Size,
  colour: boolean,
): string[] {
  const newWriter = (): TextWriter => new TextWriter(size.columns, colour)
  const list = currentList(state, snapshot)
  const height = bodyHeight(snapshot, size)
  const text = textOf(state, snapshot, newWriter())
  const scroll = 'scroll' in state.screen ? state.screen.scroll : 0
  const body = text
    ? text.slice(scroll, scroll + height)
    : list
      ? drawList(list, state.positions[state.view], { ...size, rows: height }, colour)
      : []
  const about = text
    ? describeScroll(scroll, height, text.length)
    : list && (selectedRow(list, state.positions[state.view])?.about ?? '')
  const lines = [
    ...drawTitle(state, snapshot, list, newWriter()),
    ...drawSummary(snapshot, size.rows, newWriter()),
    ...drawTabs(state, newWriter()),
    ...Array.from({ length: height }, (_, n) => body[n] ?? ''),
    ...drawFooter(state, about ?? '', newWriter()),
  ]
  return lines.slice(0, size.rows).map((line) => fitLine(line, size.columns))
}

/** A list in the selected order. */
type SortedList = BrowseList & {
  /** Rows before the filter. */
  readonly total: number
  readonly order: string
}

/** The list of the current view, sorted and filtered; null until it was read. */
export function currentList(
  { view, positions }: TopState,
  snapshot: Snapshot | null,
): SortedList | null {
  if (snapshot?.view !== view) return null
  const { list } = snapshot
  const { filter, sort } = positions[view]
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

/** Title, tabs, selected row, keys. */
const FIXED_LINES = 4

/** Lines between head and foot. */
export function bodyHeight(snapshot: Snapshot | null, { columns, rows }: Size): number {
  const summary = drawSummary(snapshot, rows, new TextWriter(columns, false))
  return Math.max(1, rows - FIXED_LINES - summary.length)
}

/** The part of a list that fits, with the selected row in it. */
export function visibleWindow(
  { row, top }: ListPosition,
  rows: readonly BrowseRow[],
  height: number,
): { index: number; top: number } {
  const found = rows.findIndex(({ id }) => id === row)
  const index = Math.max(0, found)
  const shown = Math.max(1, height - 1)
  const last = Math.max(0, rows.length - shown)
  return { index, top: Math.min(last, Math.max(Math.min(top, index), index - shown + 1)) }
}

/** The row that keys act on. */
export function selectedRow({ rows }: BrowseList, position: ListPosition): BrowseRow | undefined {
  return rows[visibleWindow(position, rows, 1).index]
}

/** All lines of a text that is scrolled; null where a list is shown. */
export function textOf(
  state: TopState,
  snapshot: Snapshot | null,
  writer: TextWriter,
): string[] | null {
  const sections = sectionsOf(state, snapshot)
  if (!sections) return null
  writer.sections(sections)
  return toLines(writer)
}

const LOADING: readonly Section[] = [
  { heading: null, sentences: [[{ text: 'Loading …', style: 'dim' }]] },
]

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
      return snapshot?.detail?.row === screen.row ? snapshot.detail.sections : LOADING
  }
}

function toLines(writer: TextWriter): string[] {
  return writer.toString().split('\n').slice(0, -1)
}

/** The summary gets more lines on a higher terminal. */
function summaryLines(rows: number): number {
  return rows >= 24 ? 3 : rows >= 16 ? 2 : 1
}

function drawTitle(
  { view, positions, screen, readonly }: TopState,
  snapshot: Snapshot | null,
  list: SortedList | null,
  writer: TextWriter,
): string[] {
  const { filter } = positions[view]
  const facts = [
    snapshot ? `${new Date(snapshot.now).toISOString().slice(11, 19)} UTC` : 'loading …',
    ...(list ? [describeCount(list), `sort: ${list.order}`] : []),
    ...(filter !== '' && screen.kind !== 'filter' ? [`only “${filter}”`] : []),
    ...(readonly ? ['read-only'] : []),
  ]
  writer.line(
    { text: 'unstuck top', style: 'strong' },
    { text: ` · ${facts.join(' · ')}`, style: 'dim' },
  )
  return toLines(writer)
}

function describeCount({ rows, total, noun }: SortedList): string {
  const all = plural(total, ...noun)
  return rows.length === total ? all : `${rows.length} of ${all}`
}

function drawSummary(snapshot: Snapshot | null, rows: number, writer: TextWriter): string[] {
  if (!snapshot) return []
  const max = summaryLines(rows)
  writer.paragraph({ text: snapshot.summary, style: snapshot.style })
  const lines = toLines(writer)
  if (lines.length <= max) return lines
  // The cut line has an ellipsis and no colour.
  const last = stripVTControlCharacters(lines[max - 1]!)
  return [...lines.slice(0, max - 1), truncate(`${last} …`, writer.columns)]
}

const TITLES: Readonly<Record<View, string>> = {
  runs: 'Runs',
  workers: 'Workers',
  recovery: 'Recovery',
  letters: 'Dead letters',
  history: 'History',
}

/** The current view is in brackets, so that it shows without colour too. */
function drawTabs({ view }: TopState, writer: TextWriter): string[] {
  const isNarrow = writer.columns < 60
  const tabs = VIEWS.map((one, n): Cell => {
    const title = isNarrow && one !== view ? '' : ` ${TITLES[one]}`
    const text = `${n + 1}${title}`
    return one === view
      ? { text: `[${text}] `, style: 'strong' }
      : { text: ` ${text}  `, style: 'dim' }
  })
  writer.line(...tabs)
  return toLines(writer)
}

const SELECTED_MARK = '> '
const UNSELECTED_MARK = '  '

function drawList(list: SortedList, position: ListPosition, size: Size, colour: boolean): string[] {
  const writer = new TextWriter(size.columns - SELECTED_MARK.length, colour)
  if (list.rows.length === 0) {
    writer.paragraph(
      list.total === 0
        ? list.empty
        : `None of ${list.total} contains “${position.filter}”. Esc shows all.`,
    )
    return toLines(writer).map((line) => `${UNSELECTED_MARK}${line}`)
  }
  const { index, top } = visibleWindow(position, list.rows, size.rows)
  const shown = list.rows.slice(top, top + size.rows - 1)
  const isWideEnough = list.columns.map(({ from = 0 }) => size.columns >= from)
  writer.table(
    list.columns.filter((_, n) => isWideEnough[n]),
    shown.map(({ cells }) => cells.filter((_, n) => isWideEnough[n])),
  )
  const [head = '', ...lines] = toLines(writer)
  return [
    `${UNSELECTED_MARK}${head}`,
    ...lines.map((line, n) =>
      top + n === index ? highlight(line, size.columns, colour) : `${UNSELECTED_MARK}${line}`,
    ),
  ]
}

/** The mark shows the selection without colour. */
function highlight(line: string, columns: number, colour: boolean): string {
  const plain = pad(`${SELECTED_MARK}${stripVTControlCharacters(line)}`, columns)
  return colour ? styleText('inverse', plain, { validateStream: false }) : plain.trimEnd()
}

/** The result of the last key, else what the selected row is about; then the keys. */
function drawFooter(state: TopState, about: string, writer: TextWriter): string[] {
  const { message, busy, screen, error } = state
  if (busy !== null) writer.line({ text: busy, style: 'warn' })
  else if (message) writer.line(message)
  else if (error !== null) writer.line({ text: error, style: 'bad' })
  else if (screen.kind === 'filter') {
    writer.line('/', { text: `${state.positions[state.view].filter}_`, style: 'strong' })
  } else if (screen.kind === 'plan') {
    const { question } = screen.plan
    writer.line({ text: question ?? 'Nothing to apply.', style: 'strong' })
  } else writer.line({ text: about, style: 'dim' })
  writer.line(...keysThatFit(availableKeys(state), writer.columns))
  return toLines(writer)
}

/** Which lines of a text are shown; empty if all are. */
function describeScroll(scroll: number, height: number, all: number): string {
  const to = Math.min(all, scroll + height)
  return all > height ? `lines ${scroll + 1} – ${to} of ${all}` : ''
}

type KeyHelp = readonly [key: string, does: string]

const BACK_KEYS: KeyHelp[] = [
  ['Esc', 'back'],
  ['↑↓', 'scroll'],
]
const HELP_KEY: KeyHelp = ['?', 'help']

/** The most important first. */
function availableKeys({ screen, view, readonly }: TopState): KeyHelp[] {
  const acts = ACTION_KEYS.filter(({ views }) => !readonly && views.includes(view)).map(
    ({ key, label }): KeyHelp => [key, label],
  )
  switch (screen.kind) {
    case 'filter':
      return [
        ['Enter', 'keep'],
        ['Esc', 'drop'],
      ]
    case 'plan':
      return screen.plan.question === null
        ? BACK_KEYS
        : [
            ['y', 'apply'],
            ['n', 'cancel'],
            ['↑↓', 'scroll'],
          ]
    case 'help':
      return BACK_KEYS
    case 'detail':
      return [...BACK_KEYS, HELP_KEY, ...acts]
    case 'list':
      return [HELP_KEY, ['q', 'quit'], ['↵', 'open'], ['/', 'filter'], ['s', 'sort'], ...acts]
  }
}

/** Only whole keys. */
function keysThatFit(keys: readonly KeyHelp[], columns: number): Cell[] {
  let left = columns
  return keys.flatMap(([key, does], n): Cell[] => {
    const gap = n === 0 ? '' : '  '
    left -= widthOf(`${gap}${key} ${does}`)
    return left >= 0 ? [gap, { text: key, style: 'strong' }, ` ${does}`] : []
  })
}

/** Cuts words that are too long to wrap, and lines that a very narrow terminal has no room for. */
function fitLine(line: string, columns: number): string {
  const plain = stripVTControlCharacters(line)
  return widthOf(plain) <= columns ? line : truncate(plain, columns)
}
