import { describeDifference, type ActionResult } from './action-result.ts'

/** An error as far as people need to know of it. */
export type ActionError = {
  /** 0: there was no answer. */
  readonly status: number
  readonly code: string
  readonly message: string
  readonly body: unknown
  readonly retryAfter: number | null
}

/** One call of an undo, and what came of it; null until it was made. */
export type UndoStep = { readonly path: string; readonly error: string | null } | null

/** Where a dialog stands between the question and the undo. */
export type ActionState =
  | { readonly at: 'looking' }
  /** There is no preview, and so nothing to agree to. */
  | { readonly at: 'blind'; readonly error: string }
  | { readonly at: 'preview'; readonly shown: ActionResult; readonly notice: string | null }
  | { readonly at: 'acting'; readonly shown: ActionResult }
  | { readonly at: 'done'; readonly result: ActionResult }
  | { readonly at: 'undoing' | 'undone'; readonly result: ActionResult; readonly steps: UndoStep[] }

type ActionEvent =
  | { readonly type: 'look' | 'act' }
  | { readonly type: 'seen' | 'acted'; readonly result: ActionResult }
  /** `fresh`: the new preview, when the plan had changed. */
  | {
      readonly type: 'failed'
      readonly error: ActionError
      readonly newPreview: ActionResult | null
    }
  | { readonly type: 'undo'; readonly steps: readonly UndoStep[]; readonly isOver: boolean }

/** What an event makes of a stage. An event that does not fit its stage came late and changes nothing. */
export function nextState(state: ActionState, event: ActionEvent): ActionState {
  switch (event.type) {
    case 'look':
      return { at: 'looking' }
    case 'seen':
      return state.at === 'looking' || state.at === 'blind'
        ? { at: 'preview', shown: event.result, notice: null }
        : state
    case 'act':
      return state.at === 'preview' ? { at: 'acting', shown: state.shown } : state
    case 'acted':
      return state.at === 'acting' ? { at: 'done', result: event.result } : state
    case 'failed':
      return afterFailure(state, event.error, event.newPreview)
    case 'undo': {
      if (!('result' in state)) return state
      const at = event.isOver ? 'undone' : 'undoing'
      return { at, result: state.result, steps: [...event.steps] }
    }
  }
}

function afterFailure(
  state: ActionState,
  error: ActionError,
  newPreview: ActionResult | null,
): ActionState {
  if (state.at === 'looking') return { at: 'blind', error: describeError(error, false) }
  if (state.at !== 'acting') return state
  const { shown } = state
  if (newPreview) {
    const notice = `Nothing was done, because it changed meanwhile: ${describeDifference(shown, newPreview)} This is what it would do now.`
    return { at: 'preview', shown: newPreview, notice }
  }
  return { at: 'preview', shown, notice: describeError(error, true) }
}

/** Why it did not work, and what to do now. */
export function describeError(error: ActionError, wasActing: boolean): string {
  const { status, message, retryAfter } = error
  if (status === 0 && wasActing)
    return 'The answer got lost, so it is not known whether it was done. Look at the history before you try again.'
  const again =
    status === 429 || status === 503
      ? ` Try again ${retryAfter === null ? 'in a moment' : `in ${retryAfter} s`}.`
      : ''
  return `${wasActing ? 'Nothing was done. ' : ''}${message}${again}`
}

/** Whether what was typed is what has to be typed. Spaces around it do not count. */
export function isConfirmed(
  confirmation: { readonly text: string; readonly always: boolean },
  count: number,
  typed: string,
): boolean {
  return !mustTypeConfirmation(confirmation, count) || typed.trim() === confirmation.text
}

/** From the hundredth on a slip is too costly for one click. */
export function mustTypeConfirmation(
  { always }: { readonly always: boolean },
  count: number,
): boolean {
  return always || count > 100
}
