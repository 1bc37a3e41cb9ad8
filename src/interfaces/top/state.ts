import type { Id, RunId } from '../../core/model/id.ts'
import type { Ink } from '../../lib/terminal/table.ts'
import type { Paper } from '../../lib/terminal/text-writer.ts'

export const VIEWS = ['runs', 'workers', 'recovery', 'letters', 'history'] as const
export type View = (typeof VIEWS)[number]

/** Where a person is in a list. */
export type Place = {
  /** The row stays chosen when the list moves under it; null: the first. */
  readonly row: string | null
  /** The first line that is shown. */
  readonly top: number
  readonly filter: string
  /** Which of the view's orders. */
  readonly sort: number
}

/** Something that a key can do to runs. It is shown before it is done. */
export type Deed =
  | { readonly kind: 'recover' }
  | { readonly kind: 'clean' }
  | { readonly kind: 'cancel'; readonly run: RunId }
  /** Takes back the last thing that was done to each. */
  | { readonly kind: 'revert'; readonly runs: readonly RunId[] }
  /** Puts targets with one kind of error back in line. */
  | { readonly kind: 'retry'; readonly fingerprint: string; readonly plan?: string }

/** A deed that was looked at: what it would do, and the question. */
export type Plan = {
  readonly deed: Deed
  readonly text: (paper: Paper) => void
  /** Null: there is nothing to be done, so nothing is asked. */
  readonly question: string | null
  /** What the plan is about: what came up since waits for another look. */
  readonly only: ReadonlySet<Id>
}

export type Screen =
  | { readonly show: 'list' }
  /** The filter is being typed; `before` comes back with Escape. */
  | { readonly show: 'filter'; readonly before: string }
  | { readonly show: 'detail'; readonly row: string; readonly scroll: number }
  | { readonly show: 'help'; readonly scroll: number }
  | { readonly show: 'plan'; readonly plan: Plan; readonly scroll: number }

export type TopState = {
  readonly view: View
  readonly places: Readonly<Record<View, Place>>
  readonly screen: Screen
  /** What became of the last key, until the next one. */
  readonly said: { readonly text: string; readonly ink: Ink } | null
  /** A deed is being looked at or done; keys that would start another wait. */
  readonly busy: string | null
  /** Why what is shown is old; null: it is not. */
  readonly trouble: string | null
  /** What was done last from here, for the key that takes it back. */
  readonly undo: readonly RunId[]
  readonly readonly: boolean
}

const START: Place = { row: null, top: 0, filter: '', sort: 0 }

export function startState(readonly: boolean): TopState {
  return {
    view: 'runs',
    places: { runs: START, workers: START, recovery: START, letters: START, history: START },
    screen: { show: 'list' },
    said: null,
    busy: null,
    trouble: null,
    undo: [],
    readonly,
  }
}

/** The same with another place in the view that is shown. */
export function moved(state: TopState, place: Partial<Place>): TopState {
  const { view, places } = state
  return { ...state, places: { ...places, [view]: { ...places[view], ...place } } }
}
