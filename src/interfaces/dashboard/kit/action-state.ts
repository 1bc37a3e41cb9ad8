import { shellWord, unstuckCommand } from '../../../core/model/shell-command.ts'
import { plural } from '../model/format.ts'
import type { ActionResult, AllowedAction, AssessedRun, Verdict } from '../shapes.ts'

/** The part of an error that is shown. */
export type ActionError = {
  /** 0: there was no answer. */
  readonly status: number
  readonly message: string
  readonly retryAfter: number | null
}

/** A call of an undo and its result; null until it was made. */
export type UndoStep = { readonly path: string; readonly error: string | null } | null

/** What a dialog shows, from the preview to the undo. */
export type ActionState =
  | { readonly at: 'loading' }
  /** There is no preview, and so nothing to confirm. */
  | { readonly at: 'no-preview'; readonly error: string }
  | { readonly at: 'preview'; readonly shown: ActionResult; readonly notice: string | null }
  | { readonly at: 'acting'; readonly shown: ActionResult }
  | { readonly at: 'done'; readonly result: ActionResult }
  | { readonly at: 'undoing' | 'undone'; readonly result: ActionResult; readonly steps: UndoStep[] }

export type ActionEvent =
  | { readonly type: 'load' | 'act' }
  | { readonly type: 'loaded' | 'acted'; readonly result: ActionResult }
  | {
      readonly type: 'failed'
      readonly error: ActionError
      /** When the plan had changed. */
      readonly newPreview: ActionResult | null
    }
  | { readonly type: 'undo'; readonly steps: readonly UndoStep[]; readonly isOver: boolean }

/** Returns the state after an event. An event that does not fit the state came late and changes nothing. */
export function nextState(state: ActionState, event: ActionEvent): ActionState {
  switch (event.type) {
    case 'load':
      return { at: 'loading' }
    case 'loaded':
      return state.at === 'loading' || state.at === 'no-preview'
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
  if (state.at === 'loading') return { at: 'no-preview', error: describeError(error, false) }
  if (state.at !== 'acting') return state
  const { shown } = state
  if (newPreview) {
    const notice = `Nothing was changed: ${describeDifference(shown, newPreview)} This is the new preview.`
    return { at: 'preview', shown: newPreview, notice }
  }
  return { at: 'preview', shown, notice: describeError(error, true) }
}

/** Why a call failed, and what to do now. */
export function describeError(error: ActionError, wasActing: boolean): string {
  const { status, message, retryAfter } = error
  if (status === 0 && wasActing)
    return 'The response was lost, so it is not known whether it was done. Check the history before you try again.'
  const again =
    status === 429 || status === 503
      ? ` Try again ${retryAfter === null ? 'in a moment' : `in ${retryAfter} s`}.`
      : ''
  return `${wasActing ? 'Nothing was done. ' : ''}${message}${again}`
}

/** Returns the recovery of one source, from that of all. */
export function narrowRecovery(action: AllowedAction, source: string): AllowedAction {
  return {
    ...action,
    call: {
      ...action.call,
      body: { ...action.call.body, sources: [source] },
      preview: `/api/recovery?${new URLSearchParams({ source })}`,
    },
    command: unstuckCommand('recover', [], { yes: true, source: [source] }),
  }
}

/** What helps first, in this order. */
const MAIN_ACTIONS: readonly AllowedAction['name'][] = [
  'recover',
  'unpause',
  'reset-failed',
  'unpark',
  'reset',
  'resume',
  'run-now',
]

/** Returns the one action whose button stands out. */
export function mainAction(actions: readonly Pick<AllowedAction, 'name'>[]) {
  return MAIN_ACTIONS.find((main) => actions.some(({ name }) => name === main))
}

/** A verdict, or a run that is cleaned or kept. */
export type ListedChange = Verdict | AssessedRun

/** Returns what an action would change, or changed, and what it leaves alone; `more`: how many of each are not listed. */
export function changesOf(result: ActionResult) {
  const { dryRun, verdicts = [], planned = 0, total = 0 } = result
  const { dead = [], resumable = [], cleaned = [] } = result
  return {
    changes: [...verdicts.slice(0, planned), ...(dryRun ? dead : cleaned)] as ListedChange[],
    more: Math.max(0, planned - verdicts.length),
    kept: [...verdicts.slice(planned), ...(dryRun ? resumable : [])] as ListedChange[],
    moreKept: total - Math.max(planned, verdicts.length),
  }
}

export function idOf(change: ListedChange): string {
  return 'id' in change ? change.id : (change.target ?? change.run)
}

/** How the current preview differs from the confirmed one. */
export function describeDifference(shown: ActionResult, now: ActionResult): string {
  const [before, after] = [changesOf(shown), changesOf(now)]
  const old = new Map(before.changes.map((change) => [idOf(change), change.action]))
  const ids = new Set(after.changes.map(idOf))
  const added = after.changes.filter((change) => !old.has(idOf(change))).length
  const gone = [...old.keys()].filter((id) => !ids.has(id)).length
  const other = after.changes.filter(
    (change) => old.has(idOf(change)) && old.get(idOf(change)) !== change.action,
  ).length
  const parts = [
    added > 0 && `${added} came in`,
    gone > 0 && `${gone} no longer ${gone === 1 ? 'needs' : 'need'} it`,
    other > 0 && `${other} would now get another verdict`,
  ].filter((part) => part !== false)
  if (before.more + after.more === 0 && parts.length > 0) return `${parts.join(', ')}.`
  return shown.count === now.count
    ? 'something about it changed meanwhile.'
    : `it was about ${shown.count}, and is about ${now.count} now.`
}

/** Whether the typed text is the one to type. Spaces around it do not count. */
export function isConfirmed(
  { confirm }: Pick<AllowedAction, 'confirm'>,
  count: number,
  typed: string,
): boolean {
  return !mustTypeConfirmation({ confirm }, count) || typed.trim() === confirm.text
}

/** A slip that concerns more than a hundred things is too costly for one click. */
export function mustTypeConfirmation(
  { confirm }: Pick<AllowedAction, 'confirm'>,
  count: number,
): boolean {
  return confirm.always || count > 100
}

/** Values of an action's fields, by name. */
export type Input = Readonly<Record<string, number | boolean>>

/** The body of the call that applies what was shown; it is also copied as curl. */
export function bodyOf(
  { call }: AllowedAction,
  input: Input,
  { plan }: Pick<ActionResult, 'plan'>,
  because: string,
): Record<string, unknown> {
  const reason = because.trim()
  return {
    ...call.body,
    ...input,
    ...(plan !== undefined && { plan }),
    ...(reason !== '' && { because: reason }),
  }
}

/** The command that applies what was shown, with the reason that was typed since. */
export function commandOf({ command }: Pick<ActionResult, 'command'>, because: string): string {
  const reason = because.trim()
  return command === '' || reason === ''
    ? command
    : `${command} ${shellWord(`--because=${reason}`)}`
}

/** One action instead of several of the same label on one target each. */
export function actTogether(actions: readonly AllowedAction[]): AllowedAction | null {
  const [first] = actions
  if (!first || actions.length === 1) return first ?? null
  const targets = actions.flatMap(({ call }) => call.body['targets'] as string[])
  return {
    ...first,
    title: `${first.label} ${plural(targets.length, 'target')}`,
    call: { ...first.call, body: { ...first.call.body, targets } },
  }
}
