import type { RunId } from '../../core/model/id.ts'
import type { Section, Style } from '../../lib/text/sentence.ts'

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
