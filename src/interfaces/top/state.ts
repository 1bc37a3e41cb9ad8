import type { RunId } from '../../core/model/id.ts'
import type { Style } from '../../lib/text/sentence.ts'
import { ACTION_KEYS, READ_ONLY, type Action, type Plan } from './actions.ts'
import { layoutOf, visibleWindow, type Layout, type Size } from './frame.ts'
import { VIEWS, type Snapshot, type View } from './snapshot.ts'
import type { Key } from './terminal.ts'

/** The selection in a list, its order and its filter. */
export type ListPosition = {
  /** Stays selected when rows move; null selects the first. */
  readonly row: string | null
  /** The first line that is shown. */
  readonly top: number
  readonly filter: string
  /** Index of the order. */
  readonly sort: number
}

export type Screen =
  | { readonly kind: 'list' }
  /** The filter is being typed; Escape restores `before`. */
  | { readonly kind: 'filter'; readonly before: string }
  | { readonly kind: 'detail'; readonly row: string; readonly scroll: number }
  | { readonly kind: 'help'; readonly scroll: number }
  | { readonly kind: 'plan'; readonly plan: Plan; readonly scroll: number }

export type TopState = {
  readonly view: View
  readonly positions: Readonly<Record<View, ListPosition>>
  readonly screen: Screen
  /** The result of the last key, until the next one. */
  readonly message: { readonly text: string; readonly style: Style } | null
  /** An action is previewed or applied; keys that start another are ignored. */
  readonly busy: string | null
  /** Why the data is old; null if it is not. */
  readonly error: string | null
  /** The runs of the last action, for the key that reverts it. */
  readonly undo: readonly RunId[]
  readonly readonly: boolean
}

const FIRST: ListPosition = { row: null, top: 0, filter: '', sort: 0 }

export function initialState(readonly: boolean): TopState {
  return {
    view: 'runs',
    positions: { runs: FIRST, workers: FIRST, recovery: FIRST, letters: FIRST, history: FIRST },
    screen: { kind: 'list' },
    message: null,
    busy: null,
    error: null,
    undo: [],
    readonly,
  }
}

/** Changes the position in the current view. */
export function withPosition(state: TopState, position: Partial<ListPosition>): TopState {
  const { view, positions } = state
  return { ...state, positions: { ...positions, [view]: { ...positions[view], ...position } } }
}

/** What a key causes outside the state. */
export type Effect =
  | { readonly type: 'quit' | 'suspend' | 'redraw' }
  /** Other data is shown now: read at once. */
  | { readonly type: 'refresh' }
  | { readonly type: 'plan'; readonly action: Action }
  | { readonly type: 'apply'; readonly plan: Plan }

export type KeyResult = { readonly state: TopState; readonly effect?: Effect }

const TERMINAL_KEYS: Readonly<Record<Key, 'quit' | 'suspend' | 'redraw'>> = {
  'ctrl-c': 'quit',
  'ctrl-z': 'suspend',
  'ctrl-l': 'redraw',
}

/** Returns the state after a key. No single key changes a run: each action is previewed first. */
export function handleKey(
  before: TopState,
  key: Key,
  snapshot: Snapshot | null,
  size: Size,
): KeyResult {
  const state: TopState = { ...before, message: null }
  const type = TERMINAL_KEYS[key]
  if (type) return { state, effect: { type } }
  const layout = layoutOf(state, snapshot, size, false)
  const { screen } = state
  switch (screen.kind) {
    case 'list':
      return handleListKey(state, key, layout)
    case 'filter':
      return { state: handleFilterKey(state, screen.before, key, layout) }
    case 'plan':
      return handlePlanKey(state, screen.plan, key, layout)
    case 'help':
      return { state: key === '?' ? showList(state) : handleTextKey(state, key, layout) }
    case 'detail':
      return handleCommonKey(state, key, layout) ?? { state: handleTextKey(state, key, layout) }
  }
}

function handleListKey(state: TopState, key: Key, layout: Layout): KeyResult {
  const position = state.positions[state.view]
  switch (key) {
    case 'q':
      return { state, effect: { type: 'quit' } }
    case '/':
      return { state: { ...state, screen: { kind: 'filter', before: position.filter } } }
    case 'escape':
      return { state: withPosition(state, { filter: '' }) }
    case 's':
      return { state: withPosition(state, { sort: position.sort + 1, top: 0 }) }
    case 'tab':
    case 'right':
      return showView(state, nextView(state, 1))
    case 'back-tab':
    case 'left':
      return showView(state, nextView(state, -1))
    case 'enter': {
      if (!layout.selected) return { state }
      const screen: Screen = { kind: 'detail', row: layout.selected.id, scroll: 0 }
      return { state: { ...state, screen }, effect: { type: 'refresh' } }
    }
    default: {
      const view = VIEWS[Number(key) - 1]
      if (view) return showView(state, view)
      return handleCommonKey(state, key, layout) ?? { state: moveSelection(state, key, layout) }
    }
  }
}

function nextView({ view }: TopState, by: number): View {
  return VIEWS[(VIEWS.indexOf(view) + by + VIEWS.length) % VIEWS.length]!
}

function showView(state: TopState, view: View): KeyResult {
  return { state: { ...showList(state), view }, effect: { type: 'refresh' } }
}

function showList(state: TopState): TopState {
  return { ...state, screen: { kind: 'list' } }
}

/** Keys that work in a list and in an open row; null for others. */
function handleCommonKey(state: TopState, key: Key, { selected }: Layout): KeyResult | null {
  if (key === '?') return { state: { ...state, screen: { kind: 'help', scroll: 0 } } }
  const found = ACTION_KEYS.find((one) => one.key === key)
  if (!found) return null
  const action = found.action({ ...state, row: selected })
  if (typeof action === 'string') return { state: withMessage(state, action) }
  if (state.readonly) return { state: withMessage(state, READ_ONLY) }
  if (state.busy !== null) return { state }
  const waiting = action.kind === 'recover' ? '; waiting for missed heartbeats' : ''
  const busy = `Preparing a preview${waiting} …`
  return { state: { ...state, busy }, effect: { type: 'plan', action } }
}

function withMessage(state: TopState, text: string): TopState {
  return { ...state, message: { text, style: 'warn' } }
}

function handlePlanKey(state: TopState, plan: Plan, key: Key, layout: Layout): KeyResult {
  if (plan.question !== null && (key === 'y' || key === 'Y')) {
    return { state: { ...showList(state), busy: 'Applying …' }, effect: { type: 'apply', plan } }
  }
  const after = ['n', 'N', 'enter'].includes(key)
    ? showList(state)
    : handleTextKey(state, key, layout)
  const isDeclined = after.screen.kind === 'list' && plan.question !== null
  return { state: isDeclined ? withMessage(after, 'Nothing was changed.') : after }
}

const FILTER_MAX = 80

function handleFilterKey(state: TopState, before: string, key: Key, layout: Layout): TopState {
  const { filter } = state.positions[state.view]
  if (key === 'enter') return showList(state)
  if (key === 'escape')
    return showList(withPosition(state, { filter: before === filter ? '' : before }))
  if (key === 'backspace') return withPosition(state, { filter: filter.replace(/.$/su, '') })
  const isTyped = /^.$/su.test(key)
  if (!isTyped) return moveSelection(state, key, layout)
  return filter.length < FILTER_MAX ? withPosition(state, { filter: filter + key, top: 0 }) : state
}

/** Selects another row and scrolls the list to it. */
function moveSelection(state: TopState, key: Key, { list, height }: Layout): TopState {
  const rows = list?.rows ?? []
  const position = state.positions[state.view]
  const { index } = visibleWindow(position, rows, height)
  const row = rows[nextIndex(key, index, height - 1, rows.length - 1)]
  if (!row || row === rows[index]) return state
  const { top } = visibleWindow({ ...position, row: row.id }, rows, height)
  return withPosition(state, { row: row.id, top })
}

/** Closes a text, or scrolls it. */
function handleTextKey(state: TopState, key: Key, { text, height }: Layout): TopState {
  const { screen } = state
  if (['escape', 'q', 'left', 'backspace'].includes(key)) return showList(state)
  if (!('scroll' in screen) || !text) return state
  const scroll = nextIndex(key, screen.scroll, height, Math.max(0, text.length - height))
  return { ...state, screen: { ...screen, scroll } }
}

function nextIndex(key: Key, from: number, page: number, last: number): number {
  const to = {
    up: from - 1,
    k: from - 1,
    down: from + 1,
    j: from + 1,
    'page-up': from - page,
    'page-down': from + page,
    ' ': from + page,
    home: 0,
    g: 0,
    end: last,
    G: last,
  }[key]
  return Math.max(0, Math.min(last, to ?? from))
}
