import { TextWriter } from '../../lib/terminal/text-writer.ts'
import type { BrowseRow } from '../../presenters/browse.ts'
import { bodyHeight, selectedRow, currentList, textOf, visibleWindow, type Size } from './frame.ts'
import type { Key } from './terminal.ts'
import type { Snapshot } from './snapshot.ts'
import {
  ACTION_KEYS,
  READ_ONLY,
  withPosition,
  VIEWS,
  type Action,
  type Plan,
  type Screen,
  type TopState,
  type View,
} from './state.ts'

/** What a key causes outside the state. */
export type Effect =
  | { readonly type: 'quit' | 'suspend' | 'redraw' }
  /** Other data is shown now: read at once. */
  | { readonly type: 'refresh' }
  | { readonly type: 'plan'; readonly action: Action }
  | { readonly type: 'apply'; readonly plan: Plan }

export type KeyResult = { readonly state: TopState; readonly effect?: Effect }

const FILTER_MAX = 80

/** Returns the state after a key. No single key changes a run: each action is previewed first. */
export function handleKey(
  before: TopState,
  key: Key,
  snapshot: Snapshot | null,
  size: Size,
): KeyResult {
  const state: TopState = { ...before, message: null }
  if (key === 'ctrl-c') return { state, effect: { type: 'quit' } }
  if (key === 'ctrl-z') return { state, effect: { type: 'suspend' } }
  if (key === 'ctrl-l') return { state, effect: { type: 'redraw' } }
  switch (state.screen.kind) {
    case 'filter':
      return { state: handleFilterKey(state, state.screen, key, snapshot, size) }
    case 'plan':
      return handlePlanKey(state, state.screen, key, snapshot, size)
    case 'help':
      return isCloseKey(key) || key === '?'
        ? { state: showList(state) }
        : { state: scrollText(state, key, snapshot, size) }
    case 'detail':
      if (isCloseKey(key)) return { state: showList(state) }
      return (
        handleCommonKey(state, key, snapshot) ?? { state: scrollText(state, key, snapshot, size) }
      )
    case 'list':
      return handleListKey(state, key, snapshot, size)
  }
}

function isCloseKey(key: Key): boolean {
  return ['escape', 'q', 'left', 'backspace'].includes(key)
}

function showList(state: TopState): TopState {
  return { ...state, screen: { kind: 'list' } }
}

function handleListKey(
  state: TopState,
  key: Key,
  snapshot: Snapshot | null,
  size: Size,
): KeyResult {
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
      return switchView(state, 1)
    case 'back-tab':
    case 'left':
      return switchView(state, -1)
    case 'enter': {
      const row = selectedRowOf(state, snapshot)
      if (!row) return { state }
      const screen: Screen = { kind: 'detail', row: row.id, scroll: 0 }
      return { state: { ...state, screen }, effect: { type: 'refresh' } }
    }
    default: {
      const view = VIEWS[Number(key) - 1]
      if (view) return showView(state, view)
      return (
        handleCommonKey(state, key, snapshot) ?? {
          state: moveSelection(state, key, snapshot, size),
        }
      )
    }
  }
}

/** Keys that work in a list and in an open row; null for others. */
function handleCommonKey(state: TopState, key: Key, snapshot: Snapshot | null): KeyResult | null {
  if (key === '?') return { state: { ...state, screen: { kind: 'help', scroll: 0 } } }
  const found = ACTION_KEYS.find((one) => one.key === key)
  if (!found) return null
  const action = found.action(state, selectedRowOf(state, snapshot))
  return typeof action === 'string'
    ? { state: withMessage(state, action) }
    : requestPlan(state, action)
}

function requestPlan(state: TopState, action: Action): KeyResult {
  if (state.readonly) return { state: withMessage(state, READ_ONLY) }
  if (state.busy !== null) return { state }
  const busy =
    action.kind === 'recover'
      ? 'Preparing a preview; waiting for missed heartbeats …'
      : 'Preparing a preview …'
  return { state: { ...state, busy }, effect: { type: 'plan', action } }
}

function withMessage(state: TopState, text: string): TopState {
  return { ...state, message: { text, style: 'warn' } }
}

function handlePlanKey(
  state: TopState,
  { plan }: Extract<Screen, { kind: 'plan' }>,
  key: Key,
  snapshot: Snapshot | null,
  size: Size,
): KeyResult {
  if (plan.question !== null && (key === 'y' || key === 'Y')) {
    return { state: { ...showList(state), busy: 'Applying …' }, effect: { type: 'apply', plan } }
  }
  const isNo = isCloseKey(key) || ['n', 'N', 'enter'].includes(key)
  if (!isNo) return { state: scrollText(state, key, snapshot, size) }
  const back = showList(state)
  return { state: plan.question === null ? back : withMessage(back, 'Nothing was changed.') }
}

function handleFilterKey(
  state: TopState,
  { before }: Extract<Screen, { kind: 'filter' }>,
  key: Key,
  snapshot: Snapshot | null,
  size: Size,
): TopState {
  const { filter } = state.positions[state.view]
  if (key === 'enter') return showList(state)
  if (key === 'escape')
    return showList(withPosition(state, { filter: before === filter ? '' : before }))
  if (key === 'backspace') return withPosition(state, { filter: filter.replace(/.$/su, '') })
  const isTyped = /^.$/su.test(key)
  if (!isTyped) return moveSelection(state, key, snapshot, size)
  return filter.length < FILTER_MAX ? withPosition(state, { filter: filter + key, top: 0 }) : state
}

function switchView(state: TopState, by: number): KeyResult {
  const next = (VIEWS.indexOf(state.view) + by + VIEWS.length) % VIEWS.length
  return showView(state, VIEWS[next]!)
}

function showView(state: TopState, view: View): KeyResult {
  return { state: { ...showList(state), view }, effect: { type: 'refresh' } }
}

/** The row that a key acts on. */
function selectedRowOf(state: TopState, snapshot: Snapshot | null): BrowseRow | undefined {
  const list = currentList(state, snapshot)
  const { screen } = state
  if (screen.kind === 'detail') return list?.rows.find(({ id }) => id === screen.row)
  return list ? selectedRow(list, state.positions[state.view]) : undefined
}

/** Selects another row and scrolls the list to it. */
function moveSelection(state: TopState, key: Key, snapshot: Snapshot | null, size: Size): TopState {
  const { rows } = currentList(state, snapshot) ?? { rows: [] }
  const position = state.positions[state.view]
  const height = bodyHeight(snapshot, size)
  const { index } = visibleWindow(position, rows, height)
  const to = nextIndex(key, index, height - 1, rows.length - 1)
  const row = rows[to]
  if (!row || to === index) return state
  const { top } = visibleWindow({ ...position, row: row.id }, rows, height)
  return withPosition(state, { row: row.id, top })
}

function scrollText(state: TopState, key: Key, snapshot: Snapshot | null, size: Size): TopState {
  const { screen } = state
  if (!('scroll' in screen)) return state
  const text = textOf(state, snapshot, new TextWriter(size.columns, false)) ?? []
  const height = bodyHeight(snapshot, size)
  const scroll = nextIndex(key, screen.scroll, height, Math.max(0, text.length - height))
  return { ...state, screen: { ...screen, scroll } }
}

function nextIndex(key: Key, from: number, page: number, last: number): number {
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
