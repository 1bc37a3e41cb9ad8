import { Paper } from '../../lib/terminal/text-writer.ts'
import { bodyHeight, chosenIn, listInFront, textOf, windowOf, type Size } from './frame.ts'
import type { Key } from './keys.ts'
import type { Look } from './snapshot.ts'
import {
  moved,
  VIEWS,
  type Deed,
  type Plan,
  type Screen,
  type TopState,
  type View,
} from './state.ts'
import type { Row } from './views.ts'

/** What a key asks of the world. */
export type Wish =
  | { readonly want: 'quit' | 'suspend' | 'redraw' }
  /** Something else is in front now: look at once. */
  | { readonly want: 'look' }
  | { readonly want: 'plan'; readonly deed: Deed }
  | { readonly want: 'act'; readonly plan: Plan }

export type Pressed = { readonly state: TopState; readonly wish?: Wish }

const FILTER_MAX = 80

/** What a key makes of the state. No single key changes a run: each deed is shown first. */
export function press(before: TopState, key: Key, look: Look | null, size: Size): Pressed {
  const state: TopState = { ...before, said: null }
  if (key === 'ctrl-c') return { state, wish: { want: 'quit' } }
  if (key === 'ctrl-z') return { state, wish: { want: 'suspend' } }
  if (key === 'ctrl-l') return { state, wish: { want: 'redraw' } }
  switch (state.screen.show) {
    case 'filter':
      return { state: typeFilter(state, state.screen, key, look, size) }
    case 'plan':
      return pressAtPlan(state, state.screen, key, look, size)
    case 'help':
      return closes(key) || key === '?'
        ? { state: toList(state) }
        : { state: scrolled(state, key, look, size) }
    case 'detail':
      if (closes(key)) return { state: toList(state) }
      return pressAnywhere(state, key, look) ?? { state: scrolled(state, key, look, size) }
    case 'list':
      return pressInList(state, key, look, size)
  }
}

function closes(key: Key): boolean {
  return ['escape', 'q', 'left', 'backspace'].includes(key)
}

function toList(state: TopState): TopState {
  return { ...state, screen: { show: 'list' } }
}

function pressInList(state: TopState, key: Key, look: Look | null, size: Size): Pressed {
  const place = state.places[state.view]
  switch (key) {
    case 'q':
      return { state, wish: { want: 'quit' } }
    case '/':
      return { state: { ...state, screen: { show: 'filter', before: place.filter } } }
    case 'escape':
      return { state: moved(state, { filter: '' }) }
    case 's':
      return { state: moved(state, { sort: place.sort + 1, top: 0 }) }
    case 'tab':
    case 'right':
      return turn(state, 1)
    case 'back-tab':
    case 'left':
      return turn(state, -1)
    case 'enter': {
      const row = chosen(state, look)
      if (!row) return { state }
      const screen: Screen = { show: 'detail', row: row.id, scroll: 0 }
      return { state: { ...state, screen }, wish: { want: 'look' } }
    }
    default: {
      const view = VIEWS[Number(key) - 1]
      if (view) return show(state, view)
      return pressAnywhere(state, key, look) ?? { state: stepped(state, key, look, size) }
    }
  }
}

/** Keys that mean the same in a list and in what is opened from it; null for others. */
function pressAnywhere(state: TopState, key: Key, look: Look | null): Pressed | null {
  switch (key) {
    case '?':
      return { state: { ...state, screen: { show: 'help', scroll: 0 } } }
    case 'R':
      return ask(state, { kind: 'recover' })
    case 'C':
      return ask(state, { kind: 'clean' })
    case 'c': {
      const run = chosen(state, look)?.run
      if (!run) return { state: told(state, 'Choose a run first: 1 shows them.') }
      return ask(state, { kind: 'cancel', run })
    }
    case 'r': {
      const row = state.view === 'letters' ? chosen(state, look) : undefined
      if (!row) return { state: told(state, 'Choose an error first: 4 shows them.') }
      return ask(state, { kind: 'retry', fingerprint: row.id })
    }
    case 'u': {
      const run = chosen(state, look)?.run
      const runs = state.undo.length > 0 ? state.undo : run ? [run] : []
      if (runs.length === 0)
        return {
          state: told(
            state,
            'Nothing was done from here: choose a run to take back what was last done to it.',
          ),
        }
      return ask(state, { kind: 'revert', runs })
    }
    default:
      return null
  }
}

function ask(state: TopState, deed: Deed): Pressed {
  if (state.readonly)
    return { state: told(state, 'This is a read-only look: start it without --readonly to act.') }
  if (state.busy !== null) return { state }
  const busy =
    deed.kind === 'recover'
      ? 'Looking what it would do, and listening whether the silent still beat …'
      : 'Looking what it would do …'
  return { state: { ...state, busy }, wish: { want: 'plan', deed } }
}

function told(state: TopState, text: string): TopState {
  return { ...state, said: { text, ink: 'warn' } }
}

function pressAtPlan(
  state: TopState,
  { plan }: Extract<Screen, { show: 'plan' }>,
  key: Key,
  look: Look | null,
  size: Size,
): Pressed {
  if (plan.question !== null && (key === 'y' || key === 'Y')) {
    return { state: { ...toList(state), busy: 'At it …' }, wish: { want: 'act', plan } }
  }
  const isNo = closes(key) || ['n', 'N', 'enter'].includes(key)
  if (!isNo) return { state: scrolled(state, key, look, size) }
  const back = toList(state)
  return { state: plan.question === null ? back : told(back, 'Nothing was changed.') }
}

function typeFilter(
  state: TopState,
  { before }: Extract<Screen, { show: 'filter' }>,
  key: Key,
  look: Look | null,
  size: Size,
): TopState {
  const { filter } = state.places[state.view]
  if (key === 'enter') return toList(state)
  if (key === 'escape') return toList(moved(state, { filter: before === filter ? '' : before }))
  if (key === 'backspace') return moved(state, { filter: filter.replace(/.$/su, '') })
  const isTyped = /^.$/su.test(key)
  if (!isTyped) return stepped(state, key, look, size)
  return filter.length < FILTER_MAX ? moved(state, { filter: filter + key, top: 0 }) : state
}

function turn(state: TopState, by: number): Pressed {
  const next = (VIEWS.indexOf(state.view) + by + VIEWS.length) % VIEWS.length
  return show(state, VIEWS[next]!)
}

function show(state: TopState, view: View): Pressed {
  return { state: { ...toList(state), view }, wish: { want: 'look' } }
}

/** The row that a key would act on. */
function chosen(state: TopState, look: Look | null): Row | undefined {
  const list = listInFront(state, look)
  const { screen } = state
  if (screen.show === 'detail') return list?.rows.find(({ id }) => id === screen.row)
  return list ? chosenIn(list, state.places[state.view]) : undefined
}

/** Another row of the list, and the list around it. */
function stepped(state: TopState, key: Key, look: Look | null, size: Size): TopState {
  const { rows } = listInFront(state, look) ?? { rows: [] }
  const place = state.places[state.view]
  const height = bodyHeight(look, size)
  const { index } = windowOf(place, rows, height)
  const to = step(key, index, height - 1, rows.length - 1)
  const row = rows[to]
  if (!row || to === index) return state
  const { top } = windowOf({ ...place, row: row.id }, rows, height)
  return moved(state, { row: row.id, top })
}

function scrolled(state: TopState, key: Key, look: Look | null, size: Size): TopState {
  const { screen } = state
  if (!('scroll' in screen)) return state
  const text = textOf(state, look, new Paper(size.columns, false)) ?? []
  const height = bodyHeight(look, size)
  const scroll = step(key, screen.scroll, height, Math.max(0, text.length - height))
  return { ...state, screen: { ...screen, scroll } }
}

function step(key: Key, from: number, page: number, last: number): number {
  const to = { up: from - 1, k: from - 1, down: from + 1, j: from + 1 }[key]
  const far = {
    'page-up': from - page,
    'page-down': from + page,
    ' ': from + page,
    home: 0,
    g: 0,
    end: last,
    G: last,
  }[key]
  return Math.max(0, Math.min(last, to ?? far ?? from))
}
