import { stripVTControlCharacters, styleText } from 'node:util'
import { Paper, type Cell } from '../../lib/terminal/text-writer.ts'
import { pad, truncate, widthOf } from '../../lib/terminal/width.ts'
import { plural } from '../../presenters/format.ts'
import { printDetail } from './detail.ts'
import { printHelp } from './help.ts'
import type { Look } from './snapshot.ts'
import { VIEWS, type Place, type TopState, type View } from './state.ts'
import { listOf, titleOf, type List, type Row } from './views.ts'

export type Size = { readonly columns: number; readonly rows: number }

/** What is drawn: a line for each row of the terminal, none wider than it. */
export function drawTop(state: TopState, look: Look | null, size: Size, colour: boolean): string[] {
  const sheet = (): Paper => new Paper(size.columns, colour)
  const list = listInFront(state, look)
  const height = bodyHeight(look, size)
  const text = textOf(state, look, sheet())
  const scroll = 'scroll' in state.screen ? state.screen.scroll : 0
  const body = text
    ? text.slice(scroll, scroll + height)
    : list
      ? drawList(list, state.places[state.view], { ...size, rows: height }, colour)
      : []
  const about = text
    ? partWords(scroll, height, text.length)
    : list && (chosenIn(list, state.places[state.view])?.about ?? '')
  const lines = [
    ...drawTitle(state, look, list, sheet()),
    ...drawSummary(look, size.rows, sheet()),
    ...drawTabs(state, sheet()),
    ...Array.from({ length: height }, (_, n) => body[n] ?? ''),
    ...drawFoot(state, about ?? '', sheet()),
  ]
  return lines.slice(0, size.rows).map((line) => fitted(line, size.columns))
}

/** The list of the view in front; null until it was fetched. */
export function listInFront({ view, places }: TopState, look: Look | null): List | null {
  return look?.seen.view === view ? listOf(look, places[view]) : null
}

/** Title, tabs, what is chosen, keys. */
const FIXED_LINES = 4

/** How many lines are left between head and foot. */
export function bodyHeight(look: Look | null, { columns, rows }: Size): number {
  const summary = drawSummary(look, rows, new Paper(columns, false))
  return Math.max(1, rows - FIXED_LINES - summary.length)
}

/** The part of a list that fits, with the chosen row in it. */
export function windowOf(
  { row, top }: Place,
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
export function chosenIn({ rows }: List, place: Place): Row | undefined {
  return rows[windowOf(place, rows, 1).index]
}

/** Everything of a text that is scrolled through; null where a list is shown. */
export function textOf(state: TopState, look: Look | null, paper: Paper): string[] | null {
  const { screen } = state
  switch (screen.show) {
    case 'list':
    case 'filter':
      return null
    case 'help':
      printHelp(paper, state.readonly, look?.where ?? null)
      break
    case 'plan':
      screen.plan.text(paper)
      break
    case 'detail':
      if (look?.detail?.row === screen.row) printDetail(paper, look.detail.page, look.now)
      else paper.say({ text: 'Looking …', ink: 'dim' })
  }
  return linesOf(paper)
}

function linesOf(paper: Paper): string[] {
  return paper.toString().split('\n').slice(0, -1)
}

/** Of the answer, at most, by how many rows there are. */
function summaryLines(rows: number): number {
  return rows >= 24 ? 3 : rows >= 16 ? 2 : 1
}

function drawTitle(
  { view, places, screen, readonly }: TopState,
  look: Look | null,
  list: List | null,
  paper: Paper,
): string[] {
  const { filter } = places[view]
  const facts = [
    look ? `${new Date(look.now).toISOString().slice(11, 19)} UTC` : 'looking …',
    ...(list ? [countWords(list), `sort: ${list.order}`] : []),
    ...(filter !== '' && screen.show !== 'filter' ? [`only “${filter}”`] : []),
    ...(readonly ? ['read-only'] : []),
  ]
  paper.line(
    { text: 'unstuck top', ink: 'strong' },
    { text: ` · ${facts.join(' · ')}`, ink: 'dim' },
  )
  return linesOf(paper)
}

function countWords({ rows, total, noun }: List): string {
  const all = plural(total, ...noun)
  return rows.length === total ? all : `${rows.length} of ${all}`
}

function drawSummary(look: Look | null, rows: number, paper: Paper): string[] {
  if (!look) return []
  const max = summaryLines(rows)
  paper.say({ text: look.summary, ink: look.mood })
  const lines = linesOf(paper)
  if (lines.length <= max) return lines
  // It goes on: the ellipsis says so, and the colour is left out of the cut.
  const last = stripVTControlCharacters(lines[max - 1]!)
  return [...lines.slice(0, max - 1), truncate(`${last} …`, paper.columns)]
}

/** The view in front stands in brackets, so that it shows without colour too. */
function drawTabs({ view }: TopState, paper: Paper): string[] {
  const isNarrow = paper.columns < 60
  const tabs = VIEWS.map((one, n): Cell => {
    const title = isNarrow && one !== view ? '' : ` ${titleOf(one)}`
    const text = `${n + 1}${title}`
    return one === view ? { text: `[${text}] `, ink: 'strong' } : { text: ` ${text}  `, ink: 'dim' }
  })
  paper.line(...tabs)
  return linesOf(paper)
}

const MARK = '> '
const NO_MARK = '  '

function drawList(list: List, place: Place, size: Size, colour: boolean): string[] {
  const paper = new Paper(size.columns - MARK.length, colour)
  if (list.rows.length === 0) {
    paper.say(
      list.total === 0 ? list.empty : `None of ${list.total} has “${place.filter}”. Esc shows all.`,
    )
    return linesOf(paper).map((line) => `${NO_MARK}${line}`)
  }
  const { index, top } = windowOf(place, list.rows, size.rows)
  const shown = list.rows.slice(top, top + size.rows - 1)
  const isWideEnough = list.columns.map(({ from = 0 }) => size.columns >= from)
  paper.table(
    list.columns.filter((_, n) => isWideEnough[n]),
    shown.map(({ cells }) => cells.filter((_, n) => isWideEnough[n])),
  )
  const [head = '', ...lines] = linesOf(paper)
  return [
    `${NO_MARK}${head}`,
    ...lines.map((line, n) =>
      top + n === index ? marked(line, size.columns, colour) : `${NO_MARK}${line}`,
    ),
  ]
}

/** Shown by the mark too, where there is no colour. */
function marked(line: string, columns: number, colour: boolean): string {
  const plain = pad(`${MARK}${stripVTControlCharacters(line)}`, columns)
  return colour ? styleText('inverse', plain, { validateStream: false }) : plain.trimEnd()
}

/** What became of the last key, else what the chosen row has to say; then the keys. */
function drawFoot(state: TopState, about: string, paper: Paper): string[] {
  const { said, busy, screen, trouble } = state
  if (busy !== null) paper.line({ text: busy, ink: 'warn' })
  else if (said) paper.line(said)
  else if (trouble !== null) paper.line({ text: trouble, ink: 'bad' })
  else if (screen.show === 'filter') {
    paper.line('/', { text: `${state.places[state.view].filter}_`, ink: 'strong' })
  } else if (screen.show === 'plan') {
    const { question } = screen.plan
    paper.line({ text: question ?? 'There is nothing to be done.', ink: 'strong' })
  } else paper.line({ text: about, ink: 'dim' })
  paper.line(...fittingKeys(keysOf(state), paper.columns))
  return linesOf(paper)
}

/** How much of a text is to be seen, where it is not all. */
function partWords(scroll: number, height: number, all: number): string {
  const to = Math.min(all, scroll + height)
  return all > height ? `lines ${scroll + 1} – ${to} of ${all}` : ''
}

type KeyAndDeed = readonly [key: string, does: string]

/** What can be done about the chosen row, besides what can be done anywhere. */
function actsIn(view: View): KeyAndDeed[] {
  const anywhere: KeyAndDeed[] = [
    ['R', 'recover'],
    ['C', 'clean'],
  ]
  if (view === 'letters') return [...anywhere, ['r', 'retry']]
  if (view === 'workers') return anywhere
  return [...anywhere, ['c', 'cancel'], ['u', 'undo']]
}

const BACK: KeyAndDeed[] = [
  ['Esc', 'back'],
  ['↑↓', 'look'],
]
const HELP: KeyAndDeed = ['?', 'help']

/** The most needed first. */
function keysOf({ screen, view, readonly }: TopState): KeyAndDeed[] {
  const acts = readonly ? [] : actsIn(view)
  switch (screen.show) {
    case 'filter':
      return [
        ['Enter', 'keep'],
        ['Esc', 'drop'],
      ]
    case 'plan':
      return screen.plan.question === null
        ? BACK
        : [
            ['y', 'do it'],
            ['n', 'do not'],
            ['↑↓', 'look'],
          ]
    case 'help':
      return BACK
    case 'detail':
      return [...BACK, HELP, ...acts]
    case 'list':
      return [HELP, ['q', 'quit'], ['↵', 'open'], ['/', 'filter'], ['s', 'sort'], ...acts]
  }
}

/** Whole ones only. */
function fittingKeys(keys: readonly KeyAndDeed[], columns: number): Cell[] {
  let left = columns
  return keys.flatMap(([key, does], n): Cell[] => {
    const gap = n === 0 ? '' : '  '
    left -= widthOf(`${gap}${key} ${does}`)
    return left >= 0 ? [gap, { text: key, ink: 'strong' }, ` ${does}`] : []
  })
}

/** Words too long to be wrapped are cut; so is what a terminal of a few columns has no room for. */
function fitted(line: string, columns: number): string {
  const plain = stripVTControlCharacters(line)
  return widthOf(plain) <= columns ? line : truncate(plain, columns)
}
