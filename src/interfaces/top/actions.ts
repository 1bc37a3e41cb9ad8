import { NotFoundError, RefusedError } from '../../core/model/errors.ts'
import { shortId, type RunId } from '../../core/model/id.ts'
import type { OperatorContext } from '../../core/recovery/context.ts'
import type { Section } from '../../lib/text/sentence.ts'
import { NOTHING_CHANGED, revertibleRuns } from '../../presenters/action-result.ts'
import { planCleaning, planRecovery, type Planned } from '../../presenters/apply-plan.ts'
import type { BrowseRow } from '../../presenters/browse.ts'
import { cleanAction, recoverAction } from '../../presenters/bulk-actions.ts'
import {
  previewReplan,
  replanDeadLetters,
  replanQuestion,
  selectDeadLetters,
} from '../../presenters/dead-letter-replan.ts'
import type { Verdict } from '../../presenters/results.ts'
import { cancel, revert } from '../../presenters/run-actions.ts'
import { pause, unpause } from '../../presenters/source-actions.ts'
import { VIEWS, type View } from './snapshot.ts'

/** What a key does to runs, after a preview. */
export type Action =
  | { readonly kind: 'recover' }
  | { readonly kind: 'clean' }
  | { readonly kind: 'cancel'; readonly run: RunId }
  /** Pauses the source of the run, or ends its pause. */
  | { readonly kind: 'pause'; readonly run: RunId }
  /** Reverts the last action on each. */
  | { readonly kind: 'revert'; readonly runs: readonly RunId[] }
  /** Puts targets with one kind of error back in the queue. */
  | { readonly kind: 'replan'; readonly fingerprint: string }

/** What an action can be about. */
type Selection = {
  readonly view: View
  readonly row: BrowseRow | undefined
  /** The runs of the last action. */
  readonly undo: readonly RunId[]
}

type ActionKey = {
  readonly key: string
  readonly label: string
  readonly help: string
  /** The views that show the key. */
  readonly views: readonly View[]
  /** Returns the action, or what has to be selected first. */
  action(selection: Selection): Action | string
}

export const READ_ONLY = 'This screen is read-only: start it without --read-only to act.'

const RUN_VIEWS: readonly View[] = ['runs', 'recovery', 'history']

/** The keys that change runs. */
export const ACTION_KEYS: readonly ActionKey[] = [
  {
    key: 'R',
    label: 'recover',
    help: recoverAction({}).about,
    views: VIEWS,
    action: () => ({ kind: 'recover' }),
  },
  {
    key: 'C',
    label: 'clean',
    help: cleanAction({}).about,
    views: VIEWS,
    action: () => ({ kind: 'clean' }),
  },
  {
    key: 'c',
    label: 'cancel',
    help: 'Cancels the selected run.',
    views: RUN_VIEWS,
    action: ({ row }) =>
      row?.run ? { kind: 'cancel', run: row.run } : 'Select a run first: 1 lists them.',
  },
  {
    key: 'r',
    label: 'plan',
    help: 'Plans the targets of a dead letter again, from their last saved pages.',
    views: ['letters'],
    action: ({ view, row }) =>
      view === 'letters' && row
        ? { kind: 'replan', fingerprint: row.id }
        : 'Select an error first: 4 lists them.',
  },
  {
    key: 'u',
    label: 'revert',
    help: 'Reverts the last action of this screen, else of the selected run.',
    views: RUN_VIEWS,
    action({ row, undo }) {
      const runs = undo.length > 0 ? undo : row?.run ? [row.run] : []
      return runs.length > 0
        ? { kind: 'revert', runs }
        : 'Select a run first: its last action is reverted.'
    },
  },
  {
    key: 'p',
    label: 'pause',
    help: 'Pauses the source of the selected run, or ends its pause.',
    views: ['runs'],
    action: ({ row }) =>
      row?.run ? { kind: 'pause', run: row.run } : 'Select a run first: 1 lists them.',
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

/** Previews an action and changes nothing. `apply` applies what the preview shows, as far as it is unchanged. */
export async function planAction(
  context: OperatorContext,
  action: Action,
  signal: AbortSignal,
): Promise<Plan> {
  switch (action.kind) {
    case 'recover':
      return toPlan(await planRecovery(context, { signal }), ({ verdicts }) => verdicts)
    case 'clean':
      return toPlan(await planCleaning(context), ({ cleaned }) => cleaned)
    case 'cancel':
      return planRunAction(context, cancel, [action.run])
    case 'pause':
      return planPause(context, action.run)
    case 'revert':
      return planRunAction(context, revert, action.runs)
    case 'replan':
      return planReplan(context, action.fingerprint, signal)
  }
}

function toPlan<View extends object>(
  { preview: { sections, question = null }, apply }: Planned<View>,
  verdictsOf: (view: View) => readonly Verdict[],
): Plan {
  return {
    // With a question, the last section only says that nothing was changed.
    sections: question === null ? sections : sections.slice(0, -1),
    question,
    async apply() {
      const { summary, view } = await apply()
      return { message: summary, undo: revertibleRuns(verdictsOf(view)).map(({ run }) => run) }
    },
  }
}

async function planRunAction(
  context: OperatorContext,
  act: typeof cancel | typeof revert,
  runs: readonly RunId[],
): Promise<Plan> {
  const actOnAll = async (dryRun: boolean): Promise<(readonly string[])[]> => {
    const all: (readonly string[])[] = []
    for (const id of runs) {
      const run = await context.store.run(id)
      if (!run) throw new NotFoundError(`run ${shortId(id)}`, 'It was deleted meanwhile.')
      all.push((await act(context, run, { dryRun })).sentences)
    }
    return all
  }
  const isCancel = act === cancel
  return {
    sections: toSections((await actOnAll(true)).flat()),
    question: `${isCancel ? 'Cancel' : 'Revert'} ${runs.length === 1 ? 'it' : 'them'}?`,
    async apply() {
      const results = await actOnAll(false)
      // The first sentence only: the message is one line.
      return {
        message: results.map(([first]) => first).join(' '),
        undo: isCancel ? runs : [],
      }
    },
  }
}

async function planPause(context: OperatorContext, id: RunId): Promise<Plan> {
  const run = await context.store.run(id)
  if (!run) throw new NotFoundError(`run ${shortId(id)}`, 'It was deleted meanwhile.')
  const { source, paused } = run
  const act = paused ? unpause : pause
  return {
    sections: toSections((await act(context, source, { dryRun: true })).sentences),
    question: paused ? `End the pause of ${source}?` : `Pause ${source}?`,
    async apply() {
      const [message] = (await act(context, source, { dryRun: false })).sentences
      return { message: message!, undo: [] }
    },
  }
}

async function planReplan(
  context: OperatorContext,
  fingerprint: string,
  signal: AbortSignal,
): Promise<Plan> {
  const select = () => selectDeadLetters(context.store, { fingerprint }, signal)
  const preview = await previewReplan(context, await select())
  return {
    sections: toSections([preview.summary]),
    question: replanQuestion(preview),
    async apply() {
      const selected = await select()
      if (selected.plan !== preview.plan)
        throw new RefusedError(
          'Nothing was changed: the targets are not the same now. Press r again.',
        )
      const done = await replanDeadLetters(context, selected, signal)
      return { message: done.summary, undo: [] }
    },
  }
}

function toSections(sentences: readonly string[]): Section[] {
  const shown = sentences.filter((sentence) => sentence !== NOTHING_CHANGED)
  return [{ heading: null, sentences: shown.map((sentence) => [sentence]) }]
}
