import type { Id, RunId } from '../../core/model/id.ts'
import type { Style } from '../../lib/text/sentence.ts'
import type { TextWriter } from '../../lib/terminal/text-writer.ts'

export const VIEWS = ['runs', 'workers', 'recovery', 'letters', 'history'] as const
export type View = (typeof VIEWS)[number]

/** Where a person is in a list. */
export type ListPosition = {
  /** The row stays chosen when the list moves under it; null: the first. */
  readonly row: string | null
  /** The first line that is shown. */
  readonly top: number
  readonly filter: string
  /** Which of the view's orders. */
  readonly sort: number
}

/** Something that a key can do to runs. It is shown before it is done. */
export type Action =
  | { readonly kind: 'recover' }
  | { readonly kind: 'clean' }
  | { readonly kind: 'cancel'; readonly run: RunId }
  /** Takes back the last thing that was done to each. */
  | { readonly kind: 'revert'; readonly runs: readonly RunId[] }
  /** Puts targets with one kind of error back in line. */
  | { readonly kind: 'retry'; readonly fingerprint: string; readonly plan?: string }

/** A deed that was looked at: what it would do, and the question. */
export type Plan = {
  readonly action: Action
  readonly text: (writer: TextWriter) => void
  /** Null: there is nothing to be done, so nothing is asked. */
  readonly question: string | null
  /** What the plan is about: what came up since waits for another look. */
  readonly only: ReadonlySet<Id>
}

export type Screen =
  | { readonly kind: 'list' }
  /** The filter is being typed; `before` comes back with Escape. */
  | { readonly kind: 'filter'; readonly before: string }
  | { readonly kind: 'detail'; readonly row: string; readonly scroll: number }
  | { readonly kind: 'help'; readonly scroll: number }
  | { readonly kind: 'plan'; readonly plan: Plan; readonly scroll: number }

export type TopState = {
  readonly view: View
  readonly positions: Readonly<Record<View, ListPosition>>
  readonly screen: Screen
  /** What became of the last key, until the next one. */
  readonly message: { readonly text: string; readonly style: Style } | null
  /** A deed is being looked at or done; keys that would start another wait. */
  readonly busy: string | null
  /** Why what is shown is old; null: it is not. */
  readonly error: string | null
  /** What was done last from here, for the key that takes it back. */
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

/** The same with another place in the view that is shown. */
export function withPosition(state: TopState, position: Partial<ListPosition>): TopState {
  const { view, positions } = state
  return { ...state, positions: { ...positions, [view]: { ...positions[view], ...position } } }
}
