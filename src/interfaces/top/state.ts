import type { RunId } from '../../core/model/id.ts'
import type { Section, Style } from '../../lib/text/sentence.ts'
import type { BrowseRow } from '../../presenters/browse.ts'

export const VIEWS = ['runs', 'workers', 'recovery', 'letters', 'history'] as const
export type View = (typeof VIEWS)[number]

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

/** What a key does to runs, after a preview. */
export type Action =
  | { readonly kind: 'recover' }
  | { readonly kind: 'clean' }
  | { readonly kind: 'cancel'; readonly run: RunId }
  /** Reverts the last action on each. */
  | { readonly kind: 'revert'; readonly runs: readonly RunId[] }
  /** Puts targets with one kind of error back in line. */
  | { readonly kind: 'retry'; readonly fingerprint: string }

type ActionKey = {
  readonly key: string
  readonly label: string
  readonly help: string
  /** The views that show the key. */
  readonly views: readonly View[]
  /** Returns the action, or what has to be selected first. */
  action(state: TopState, row: BrowseRow | undefined): Action | string
}

const RUN_VIEWS: readonly View[] = ['runs', 'recovery', 'history']

/** The keys that change runs. */
export const ACTION_KEYS: readonly ActionKey[] = [
  {
    key: 'R',
    label: 'recover',
    help: 'recover what dead and silent workers held, as `unstuck recover`',
    views: VIEWS,
    action: () => ({ kind: 'recover' }),
  },
  {
    key: 'C',
    label: 'clean',
    help: 'mark dead runs as “Timeout – auto-cleaned”, as `unstuck clean`',
    views: VIEWS,
    action: () => ({ kind: 'clean' }),
  },
  {
    key: 'c',
    label: 'cancel',
    help: 'cancel the selected run, as `unstuck cancel`',
    views: RUN_VIEWS,
    action: (_, row) =>
      row?.run ? { kind: 'cancel', run: row.run } : 'Select a run first: 1 lists them.',
  },
  {
    key: 'r',
    label: 'retry',
    help: 'on a dead letter: put its targets back in line, from their last saved pages',
    views: ['letters'],
    action: ({ view }, row) =>
      view === 'letters' && row
        ? { kind: 'retry', fingerprint: row.id }
        : 'Select an error first: 4 lists them.',
  },
  {
    key: 'u',
    label: 'revert',
    help: 'revert the last action of this screen, else of the selected run, as `unstuck revert`',
    views: RUN_VIEWS,
    action({ undo }, row) {
      if (undo.length > 0) return { kind: 'revert', runs: undo }
      return row?.run
        ? { kind: 'revert', runs: [row.run] }
        : 'Select a run first: its last action is reverted.'
    },
  },
]

/** An action with its preview. */
export type Plan = {
  readonly sections: readonly Section[]
  /** Null if there is nothing to apply. */
  readonly question: string | null
  apply(): Promise<{
    readonly message: string
    /** The runs that can be reverted. */
    readonly undo: readonly RunId[]
  }>
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

const INITIAL_POSITION: ListPosition = { row: null, top: 0, filter: '', sort: 0 }

export function initialState(readonly: boolean): TopState {
  return {
    view: 'runs',
    positions: {
      runs: INITIAL_POSITION,
      workers: INITIAL_POSITION,
      recovery: INITIAL_POSITION,
      letters: INITIAL_POSITION,
      history: INITIAL_POSITION,
    },
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

const NAVIGATION_KEYS: readonly [string, string][] = [
  ['1 – 5, Tab', 'runs, workers, recovery, dead letters, history'],
  ['↑ ↓, j k', 'move; PgUp PgDn by a page, Home End to the ends'],
  ['Enter', 'open the selected row; Esc closes it'],
  ['/', 'filter: every word must occur in a row; Enter keeps the filter, Esc drops it'],
  ['s', 'next order; the first line shows which one'],
  ['q, Ctrl-C', 'quit; Ctrl-Z suspends, `fg` continues'],
]

export const READ_ONLY = 'This screen is read-only: start it without --readonly to act.'

export function helpSections(readonly: boolean, where: string | null): Section[] {
  const keys = (all: readonly (readonly [string, string])[]): Section['sentences'] =>
    all.map(([key, meaning]) => ['- ', { text: key, style: 'strong' }, `: ${meaning}`])
  const actions = keys(ACTION_KEYS.map(({ key, help }) => [key, help]))
  const database = { text: `The database is ${where}.`, style: 'dim' as const }
  return [
    { heading: 'Navigate', sentences: keys(NAVIGATION_KEYS) },
    {
      heading: 'Act',
      sentences: readonly
        ? [[READ_ONLY]]
        : [...actions, ['Each shows a preview, and applies it only after y.']],
    },
    ...(where === null ? [] : [{ heading: null, sentences: [[database]] }]),
  ]
}
