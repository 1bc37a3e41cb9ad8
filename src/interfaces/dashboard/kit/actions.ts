import { shellWord } from '../../../core/model/shell-command.ts'
import type { Cleaning, ActionResponse, Recovery } from '../shapes.ts'
import { plural, formatRow, shortId } from '../model/format.ts'
import {
  resultOfCleaning,
  resultOfDeletion,
  resultOfAction,
  resultOfRecovery,
  resultOfDeadLetterRetry,
  type ActionResult,
  type Deletion,
  type DeadLetterRetry,
} from './action-result.ts'

/** Something that the dialog asks for before there is a preview. */
export type Field = {
  readonly name: string
  readonly label: string
  readonly initial: number | boolean
  readonly max?: number
}
export type Input = Readonly<Record<string, unknown>>

/** One deed that people can do, from the preview to the undo. The dialog does the rest. */
export type Action = {
  readonly title: string
  /** On the button. */
  readonly verb: string
  /** What it does, and whether it can be taken back. */
  readonly about: string
  /** It cannot be taken back, or ends something. */
  readonly isDestructive: boolean
  /** It is about any number of things, which the button names. */
  readonly isCounted: boolean
  /** What has to be typed first: always when it cannot be taken back, else from the hundredth on. */
  readonly confirmation: { readonly text: string; readonly always: boolean }
  /** A reason may be given; it goes into the audit trail. */
  readonly takesReason: boolean
  readonly fields: readonly Field[]
  readonly method: 'POST' | 'DELETE'
  readonly path: string
  /** Where the preview comes from: this call, or null for the same call as a dry run. */
  readonly preview: string | null
  /** Some of what it is about, where the preview has only a count. */
  readonly sample: string | null
  /** `shown`: the preview that is agreed to; null when there is none yet. */
  body(input: Input, shown: ActionResult | null): Record<string, unknown>
  toResult(answer: unknown): ActionResult
}

/** The body of the call that does what was shown; also what is copied as curl. */
export function bodyOf(
  action: Action,
  input: Input,
  { shown, because }: { readonly shown: ActionResult; readonly because: string },
): Record<string, unknown> {
  return {
    ...action.body(input, shown),
    ...(shown.plan !== null && { plan: shown.plan }),
    ...(because.trim() !== '' && { because: because.trim() }),
  }
}

/** The command that does what was shown, with the reason that was typed since. */
export function commandOf({ command }: Pick<ActionResult, 'command'>, because: string): string {
  const reason = because.trim()
  return command === '' || reason === ''
    ? command
    : `${command} ${shellWord(`--because=${reason}`)}`
}

type RunRef = {
  readonly id: string
  readonly source: string
  /** The row of a table of the user's own that it is. */
  readonly adopted?: RowRef | null
}
type RowRef = { readonly table: string; readonly key: string }
type TargetRef = { readonly id: string; readonly key: string }

const ACTION_DEFAULTS = {
  isDestructive: false,
  isCounted: false,
  takesReason: false,
  fields: [],
  method: 'POST',
  preview: null,
  sample: null,
  body: () => ({}),
} as const

const FROM_PAGES = ', each from its last saved page.'
const OWN_PROGRAM = ', by the word that your table has for it. Your own program takes it up.'

function runLabel({ source, adopted }: RunRef): string {
  return adopted ? formatRow(adopted) : `the run of ${source}`
}

export function recover(
  which: {
    readonly timeout?: string
    readonly sources?: readonly string[]
    readonly groups?: readonly string[]
  } = {},
): Action {
  const query = new URLSearchParams()
  if (which.timeout) query.set('timeout', which.timeout)
  for (const source of which.sources ?? []) query.append('source', source)
  for (const group of which.groups ?? []) query.append('group', group)
  return {
    ...ACTION_DEFAULTS,
    title: 'Recover what is stuck',
    verb: 'Recover',
    about:
      'Takes back what dead and silent workers held. It never touches the living, and goes on from the last saved page.',
    isCounted: true,
    confirmation: { text: 'recover', always: false },
    path: '/api/recovery',
    preview: withQuery('/api/recovery', query),
    body: () => ({ ...which }),
    toResult: (answer) => resultOfRecovery(answer as Recovery),
  }
}

export function clean(
  which: { readonly runs?: readonly string[]; readonly age?: string } = {},
): Action {
  const query = new URLSearchParams(which.age ? { age: which.age } : {})
  return {
    ...ACTION_DEFAULTS,
    title: 'Clean dead runs',
    verb: 'Clean',
    about:
      'Marks runs that nobody works on and that have nothing to go on from as “Timeout – auto-cleaned”, and rows of tables of your own with the word that those have for it. Nothing is deleted; each can be taken back.',
    isCounted: true,
    confirmation: { text: 'clean', always: false },
    path: '/api/clean',
    preview: which.runs ? null : withQuery('/api/clean', query),
    body: () => ({ ...which }),
    toResult: (answer) => resultOfCleaning(answer as Cleaning),
  }
}

export function cancelRun(run: RunRef): Action {
  return {
    ...onRun(run, 'cancel'),
    title: `Cancel ${runLabel(run)}`,
    verb: run.adopted ? 'Cancel it' : 'Cancel the run',
    about: run.adopted
      ? `Writes the word of ${run.adopted.table} for what was cancelled, if the row is still as it is now. Nothing stops the program that may be at work on it. It can be taken back.`
      : 'Its workers stop at their next page. What is saved stays, and it can be taken back.',
    isDestructive: true,
    takesReason: true,
  }
}

export function resumeRun(run: RunRef): Action {
  return {
    ...onRun(run, 'resume'),
    title: `Resume ${runLabel(run)}`,
    verb: 'Resume',
    about: run.adopted
      ? `Puts it back in line, by the word that ${run.adopted.table} has for it. Your own program goes on with it.`
      : 'Opens it again: what is not done goes on from its last saved page.',
    takesReason: true,
  }
}

export function retryRun(run: RunRef): Action {
  return {
    ...onRun(run, 'retry'),
    title: `Retry the run of ${run.source} from nothing`,
    verb: 'Retry',
    about: 'A new run is queued that begins from nothing. Items stay as they are saved.',
    takesReason: true,
  }
}

export function revertRun(run: RunRef): Action {
  return {
    ...onRun(run, 'revert'),
    title: `Undo the last thing done to ${runLabel(run)}`,
    verb: 'Undo',
    about: 'Takes back the last deed in its audit trail, where that is still possible.',
    takesReason: true,
  }
}

export function resetFailed(
  run: RunRef,
  only: { readonly groups?: readonly string[] } = {},
): Action {
  return {
    ...onRun(run, 'reset-failed'),
    title: `Reset the failed targets of ${run.source}`,
    verb: 'Reset',
    about: `Failed targets go back in line${run.adopted ? OWN_PROGRAM : FROM_PAGES}`,
    isCounted: true,
    sample: `/api/runs/${run.id}/targets?status=failed&limit=5`,
    body: () => ({ ...only }),
    toResult: (answer) => resultOfAction(answer as ActionResponse, 'targets'),
  }
}

export function unparkRun(run: RunRef, only: { readonly groups?: readonly string[] } = {}): Action {
  return {
    ...onRun(run, 'unpark'),
    title: `Unpark targets of ${run.source}`,
    verb: 'Unpark',
    about: `Parked targets go back in line${run.adopted ? OWN_PROGRAM : FROM_PAGES}`,
    isCounted: true,
    sample: `/api/runs/${run.id}/targets?status=parked&limit=5`,
    body: () => ({ ...only }),
    toResult: (answer) => resultOfAction(answer as ActionResponse, 'targets'),
  }
}

export function deleteRun(run: RunRef): Action {
  const confirmText = `delete ${shortId(run.id)}`
  return {
    ...ACTION_DEFAULTS,
    title: `Delete the run of ${run.source}`,
    verb: 'Delete for good',
    about: 'The run, its targets and its files go. This cannot be taken back.',
    isDestructive: true,
    confirmation: { text: confirmText, always: true },
    fields: [{ name: 'withItems', label: 'The items that no other run has saved', initial: false }],
    method: 'DELETE',
    path: `/api/runs/${run.id}`,
    body: ({ withItems }) => ({ confirm: confirmText, ...(withItems === true && { withItems }) }),
    toResult: (answer) => resultOfDeletion(answer as Deletion),
  }
}

export function parkTargets(targets: readonly TargetRef[], adopted?: RowRef | null): Action {
  const ids = targets.map(({ id }) => id)
  return {
    ...ACTION_DEFAULTS,
    title:
      targets.length === 1 ? `Park ${targets[0]!.key}` : `Park ${plural(ids.length, 'target')}`,
    verb: 'Park',
    about: adopted
      ? `Writes the word of ${adopted.table} for what is set aside. Nothing stops the program that may be at work on it. It can be taken back.`
      : 'Sets aside: no worker takes it until somebody unparks it. It can be taken back.',
    isCounted: true,
    confirmation: { text: 'park', always: false },
    takesReason: true,
    path: '/api/targets/park',
    body: () => ({ targets: ids }),
    toResult: (answer) => resultOfAction(answer as ActionResponse, 'targets'),
  }
}

export function unparkTarget(target: TargetRef, adopted?: RowRef | null): Action {
  return {
    ...onTarget(target, 'unpark'),
    title: `Unpark ${target.key}`,
    verb: 'Unpark',
    about: `It goes back in line${adopted ? OWN_PROGRAM : ', from its last saved page.'}`,
  }
}

export function resetTarget(target: TargetRef, adopted?: RowRef | null): Action {
  return {
    ...onTarget(target, 'reset'),
    title: `Put ${target.key} back in line`,
    verb: 'Reset',
    about: adopted
      ? `It goes back in line${OWN_PROGRAM}`
      : 'Its handler tries it again, from its last saved page.',
  }
}

export function rewindTarget(target: TargetRef & { readonly page: number }): Action {
  return {
    ...onTarget(target, 'rewind'),
    title: `Rewind ${target.key}`,
    verb: 'Rewind',
    about:
      'It goes on after an earlier page and fetches the later ones again. Items are saved once, whatever comes twice.',
    fields: [
      {
        name: 'to',
        label: 'Go on after page',
        initial: Math.max(0, target.page - 1),
        max: target.page,
      },
    ],
    body: ({ to }) => ({ to: Number(to) }),
  }
}

export type DeadLetterSelection = {
  readonly fingerprint?: string
  readonly source?: string
  readonly statuses?: readonly string[]
}

/** `words`: how many the page showed; the preview counts them itself. */
export function retryDeadLetters(which: DeadLetterSelection, confirmText: string): Action {
  const query = new URLSearchParams({ limit: '5', ...(which.source && { source: which.source }) })
  return {
    ...ACTION_DEFAULTS,
    title: `Retry ${confirmText}`,
    verb: 'Retry',
    about: 'They go back in line, each from its last saved page. Ended runs are opened again.',
    isCounted: true,
    confirmation: { text: 'retry', always: false },
    path: '/api/dead-letters/retry',
    sample: which.fingerprint
      ? withQuery(`/api/dead-letters/${which.fingerprint}/targets`, query)
      : null,
    body: () => ({ ...which }),
    toResult: (answer) => resultOfDeadLetterRetry(answer as DeadLetterRetry),
  }
}

function onRun({ id, source }: RunRef, verb: string) {
  return {
    ...ACTION_DEFAULTS,
    confirmation: { text: source, always: false },
    path: `/api/runs/${id}/${verb}`,
    toResult: (answer: unknown) => resultOfAction(answer as ActionResponse, 'run'),
  }
}

function onTarget({ id }: TargetRef, verb: string) {
  return {
    ...ACTION_DEFAULTS,
    confirmation: { text: verb, always: false },
    path: `/api/targets/${id}/${verb}`,
    toResult: (answer: unknown) => resultOfAction(answer as ActionResponse, 'targets'),
  }
}

function withQuery(path: string, query: URLSearchParams): string {
  return query.size === 0 ? path : `${path}?${query}`
}
