import { stripVTControlCharacters, styleText } from 'node:util'
import { TextWriter } from '../../lib/terminal/text-writer.ts'
import type { Cell } from '../../lib/text/sentence.ts'
import { pad, truncate, widthOf } from '../../lib/terminal/width.ts'
import { plural } from '../../presenters/format.ts'
import { printDetail } from './detail.ts'
import { printHelp } from './help.ts'
import type { Snapshot } from './snapshot.ts'
import { VIEWS, type ListPosition, type TopState, type View } from './state.ts'
import { buildList, titleOf, type List, type Row } from './views.ts'

export type Size = { readonly columns: number; readonly rows: number }

/** What is drawn: a line for each row of the terminal, none wider than it. */
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

/** The list of the view in front; null until it was fetched. */
export function currentList({ view, positions }: TopState, snapshot: Snapshot | null): List | null {
  return snapshot?.viewData.view === view ? buildList(snapshot, positions[view]) : null
}

/** Title, tabs, what is chosen, keys. */
const FIXED_LINES = 4

/** How many lines are left between head and foot. */
export function bodyHeight(snapshot: Snapshot | null, { columns, rows }: Size): number {
  const summary = drawSummary(snapshot, rows, new TextWriter(columns, false))
  return Math.max(1, rows - FIXED_LINES - summary.length)
}

/** The part of a list that fits, with the chosen row in it. */
export function visibleWindow(
  { row, top }: ListPosition,
  rows: readonly Row[],
  height: number,
): { index: number; top: number } {
  const found = rows.findIndex(({ id }) => id === row)
  const index = Math.max(0, found)
  const shown = Math.max(1, height - 1)
  const last = Math.max(0, rows.length - shown)
  return { index, top: Math.min(last, Math.max(Math.min(top, index), index - shown + 1)) }
}

/** The row that keys are about. */
export function selectedRow({ rows }: List, position: ListPosition): Row | undefined {
  return rows[visibleWindow(position, rows, 1).index]
}

/** Everything of a text that is scrolled through; null where a list is shown. */
export function textOf(
  state: TopState,
  snapshot: Snapshot | null,
  writer: TextWriter,
): string[] | null {
  const { screen } = state
  switch (screen.kind) {
    case 'list':
    case 'filter':
      return null
    case 'help':
      printHelp(writer, state.readonly, snapshot?.where ?? null)
      break
    case 'plan':
      screen.plan.text(writer)
      break
    case 'detail':
      if (snapshot?.detail?.row === screen.row)
        printDetail(writer, snapshot.detail.page, snapshot.now)
      else writer.paragraph({ text: 'Looking …', style: 'dim' })
  }
  return toLines(writer)
}

function toLines(writer: TextWriter): string[] {
  return writer.toString().split('\n').slice(0, -1)
}

/** Of the answer, at most, by how many rows there are. */
function summaryLines(rows: number): number {
  return rows >= 24 ? 3 : rows >= 16 ? 2 : 1
}

function drawTitle(
  { view, positions, screen, readonly }: TopState,
  snapshot: Snapshot | null,
  list: List | null,
  writer: TextWriter,
): string[] {
  const { filter } = positions[view]
  const facts = [
    snapshot ? `${new Date(snapshot.now).toISOString().slice(11, 19)} UTC` : 'looking …',
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

function describeCount({ rows, total, noun }: List): string {
  const all = plural(total, ...noun)
  return rows.length === total ? all : `${rows.length} of ${all}`
}

function drawSummary(snapshot: Snapshot | null, rows: number, writer: TextWriter): string[] {
  if (!snapshot) return []
  const max = summaryLines(rows)
  writer.paragraph({ text: snapshot.summary, style: snapshot.style })
  const lines = toLines(writer)
  if (lines.length <= max) return lines
  // It goes on: the ellipsis says so, and the colour is left out of the cut.
  const last = stripVTControlCharacters(lines[max - 1]!)
  return [...lines.slice(0, max - 1), truncate(`${last} …`, writer.columns)]
}

/** The view in front stands in brackets, so that it shows without colour too. */
function drawTabs({ view }: TopState, writer: TextWriter): string[] {
  const isNarrow = writer.columns < 60
  const tabs = VIEWS.map((one, n): Cell => {
    const title = isNarrow && one !== view ? '' : ` ${titleOf(one)}`
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

function drawList(list: List, position: ListPosition, size: Size, colour: boolean): string[] {
  const writer = new TextWriter(size.columns - SELECTED_MARK.length, colour)
  if (list.rows.length === 0) {
    writer.paragraph(
      list.total === 0
        ? list.empty
        : `None of ${list.total} has “${position.filter}”. Esc shows all.`,
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

/** Shown by the mark too, where there is no colour. */
function highlight(line: string, columns: number, colour: boolean): string {
  const plain = pad(`${SELECTED_MARK}${stripVTControlCharacters(line)}`, columns)
  return colour ? styleText('inverse', plain, { validateStream: false }) : plain.trimEnd()
}

/** What became of the last key, else what the chosen row has to say; then the keys. */
function drawFooter(state: TopState, about: string, writer: TextWriter): string[] {
  const { message, busy, screen, error } = state
  if (busy !== null) writer.line({ text: busy, style: 'warn' })
  else if (message) writer.line(message)
  else if (error !== null) writer.line({ text: error, style: 'bad' })
  else if (screen.kind === 'filter') {
    writer.line('/', { text: `${state.positions[state.view].filter}_`, style: 'strong' })
  } else if (screen.kind === 'plan') {
    const { question } = screen.plan
    writer.line({ text: question ?? 'There is nothing to be done.', style: 'strong' })
  } else writer.line({ text: about, style: 'dim' })
  writer.line(...keysThatFit(availableKeys(state), writer.columns))
  return toLines(writer)
}

/** How much of a text is to be seen, where it is not all. */
function describeScroll(scroll: number, height: number, all: number): string {
  const to = Math.min(all, scroll + height)
  return all > height ? `lines ${scroll + 1} – ${to} of ${all}` : ''
}

type KeyHelp = readonly [key: string, does: string]

/** What can be done about the chosen row, besides what can be done anywhere. */
function viewActions(view: View): KeyHelp[] {
  const anywhere: KeyHelp[] = [
    ['R', 'recover'],
    ['C', 'clean'],
  ]
  if (view === 'letters') return [...anywhere, ['r', 'retry']]
  if (view === 'workers') return anywhere
  return [...anywhere, ['c', 'cancel'], ['u', 'undo']]
}

const BACK_KEYS: KeyHelp[] = [
  ['Esc', 'back'],
  ['↑↓', 'look'],
]
const HELP_KEY: KeyHelp = ['?', 'help']

/** The most needed first. */
function availableKeys({ screen, view, readonly }: TopState): KeyHelp[] {
  const acts = readonly ? [] : viewActions(view)
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
            ['y', 'do it'],
            ['n', 'do not'],
            ['↑↓', 'look'],
          ]
    case 'help':
      return BACK_KEYS
    case 'detail':
      return [...BACK_KEYS, HELP_KEY, ...acts]
    case 'list':
      return [HELP_KEY, ['q', 'quit'], ['↵', 'open'], ['/', 'filter'], ['s', 'sort'], ...acts]
  }
}

/** Whole ones only. */
function keysThatFit(keys: readonly KeyHelp[], columns: number): Cell[] {
  let left = columns
  return keys.flatMap(([key, does], n): Cell[] => {
    const gap = n === 0 ? '' : '  '
    left -= widthOf(`${gap}${key} ${does}`)
    return left >= 0 ? [gap, { text: key, style: 'strong' }, ` ${does}`] : []
  })
}

/** Words too long to be wrapped are cut; so is what a terminal of a few columns has no room for. */
function fitLine(line: string, columns: number): string {
  const plain = stripVTControlCharacters(line)
  return widthOf(plain) <= columns ? line : truncate(plain, columns)
}
