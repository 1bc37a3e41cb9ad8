import { TRUSTED_OBSERVER } from '../../core/decide/liveness.ts'
import { REAL_CLOCK, type Clock } from '../../core/host/clock.ts'
import { NotFoundError, RefusedError } from '../../core/model/errors.ts'
import { shortId, type RunId } from '../../core/model/id.ts'
import type { Run } from '../../core/model/run.ts'
import { classifyRuns, cleanRuns } from '../../core/recovery/clean.ts'
import type { OperatorContext } from '../../core/recovery/context.ts'
import { recover } from '../../core/recovery/recover.ts'
import type { Section } from '../../lib/text/sentence.ts'
import { NOTHING_CHANGED, revertibleRuns } from '../../presenters/action-result.ts'
import { cleaningQuestion, presentCleaning, presentSummary } from '../../presenters/cleaning.ts'
import {
  previewRetry,
  retryDeadLetters,
  retryQuestion,
  retrySentences,
  selectDeadLetters,
} from '../../presenters/dead-letter-retry.ts'
import {
  afterRecovery,
  plannedSubjects,
  presentRecovery,
  recoveryQuestion,
} from '../../presenters/recovery.ts'
import { cancel, revert } from '../../presenters/run-actions.ts'
import type { Action, Plan } from './state.ts'

/** Previews an action and changes nothing. `apply` applies what the preview shows, as far as it is unchanged. */
export function planAction(
  context: OperatorContext,
  action: Action,
  signal: AbortSignal,
): Promise<Plan> {
  switch (action.kind) {
    case 'recover':
      return planRecovery(context, signal)
    case 'clean':
      return planCleaning(context)
    case 'cancel':
      return planRunAction(context, cancel, [action.run])
    case 'revert':
      return planRunAction(context, revert, action.runs)
    case 'retry':
      return planRetry(context, action.fingerprint, signal)
  }
}

async function planRecovery(context: OperatorContext, signal: AbortSignal): Promise<Plan> {
  const clock: Clock = { ...REAL_CLOCK, sleep: (ms) => REAL_CLOCK.sleep(ms, signal) }
  const seen = await recover({ ...context, clock }, { dryRun: true })
  const preview = presentRecovery(seen, { dryRun: true })
  return {
    sections: preview.sections.slice(0, -1),
    question: recoveryQuestion(preview),
    async apply() {
      // The preview has just waited for heartbeats.
      const options = { observer: TRUSTED_OBSERVER, only: plannedSubjects(seen) }
      const done = afterRecovery(seen, (await recover(context, options)).verdicts)
      const { summary } = presentRecovery(done, { dryRun: false })
      return { message: summary, undo: revertibleRuns(done.verdicts) }
    },
  }
}

async function planCleaning(context: OperatorContext): Promise<Plan> {
  const classified = await classifyRuns(context)
  return {
    sections: presentSummary(classified).sections,
    question: cleaningQuestion(classified),
    async apply() {
      const cleaned = await cleanRuns(context, classified.dead)
      const { summary } = presentCleaning(classified, cleaned, { dryRun: false })
      return { message: summary, undo: revertibleRuns(cleaned) }
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
    for (const id of runs)
      all.push((await act(context, await requireRun(context, id), { dryRun })).sentences)
    return all
  }
  const isCancel = act === cancel
  return {
    sections: toSections((await actOnAll(true)).flat()),
    question: `${isCancel ? 'Cancel' : 'Revert'} ${runs.length === 1 ? 'it' : 'them'}?`,
    async apply() {
      const results = await actOnAll(false)
      return isCancel
        ? { message: results.flat().join(' '), undo: runs }
        : { message: results.map(([first]) => first).join(' '), undo: [] }
    },
  }
}

async function planRetry(
  context: OperatorContext,
  fingerprint: string,
  signal: AbortSignal,
): Promise<Plan> {
  const select = () => selectDeadLetters(context.store, { fingerprint }, signal)
  const preview = await previewRetry(context, await select())
  return {
    sections: toSections(retrySentences(preview)),
    question: retryQuestion(preview),
    async apply() {
      const selected = await select()
      if (selected.plan !== preview.plan)
        throw new RefusedError(
          'Nothing was changed: the targets are not the same now. Press r again.',
        )
      const done = await retryDeadLetters(context, selected, signal)
      return { message: retrySentences(done).join(' '), undo: [] }
    },
  }
}

function toSections(sentences: readonly string[]): Section[] {
  const shown = sentences.filter((sentence) => sentence !== NOTHING_CHANGED)
  return [{ heading: null, sentences: shown.map((sentence) => [sentence]) }]
}

async function requireRun({ store }: OperatorContext, id: RunId): Promise<Run> {
  const run = await store.run(id)
  if (!run) throw new NotFoundError(`run ${shortId(id)}`, 'It was deleted meanwhile.')
  return run
}
