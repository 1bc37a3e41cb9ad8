import { TRUSTED_OBSERVER } from '../../core/decide/liveness.ts'
import { NotFoundError, RefusedError } from '../../core/model/errors.ts'
import { shortId, type RunId } from '../../core/model/id.ts'
import type { Run } from '../../core/model/run.ts'
import { cleanRuns, classifyRuns } from '../../core/recovery/clean.ts'
import { REAL_CLOCK, type Clock } from '../../core/host/clock.ts'
import type { OperatorContext } from '../../core/recovery/context.ts'
import { recover } from '../../core/recovery/recover.ts'
import {
  selectDeadLetters,
  previewRetry,
  retryDeadLetters,
} from '../../presenters/dead-letter-retry.ts'
import { NOTHING_CHANGED } from '../../presenters/action-result.ts'
import { classifyVerdicts } from '../../presenters/recovery.ts'
import { cancel, revert } from '../../presenters/run-actions.ts'
import { revertibleRuns } from '../../presenters/undo.ts'
import { plural } from '../../presenters/format.ts'
import { printPlan } from '../cli/recovery-text.ts'
import { printSummary } from '../cli/summary-text.ts'
import type { Action, Plan } from './state.ts'

/** What became of a deed: a sentence, and the runs that it can be taken back from. */
export type ActionResult = { readonly message: string; readonly undo: readonly RunId[] }

/** Looks what a deed would do, and changes nothing. */
export async function planAction(
  context: OperatorContext,
  action: Action,
  signal: AbortSignal,
): Promise<Plan> {
  switch (action.kind) {
    case 'recover': {
      const plan = classifyVerdicts(
        await recover({ ...context, clock: clockUntil(signal) }, { dryRun: true }),
      )
      const { planned } = plan
      return {
        action,
        text: (writer) => printPlan(writer, plan),
        question: planned.length === 0 ? null : confirmQuestion(planned.length),
        only: new Set(planned.map(({ run, target }) => target ?? run)),
      }
    }
    case 'clean': {
      const classified = await classifyRuns(context)
      const { dead } = classified
      const areRows = dead.every(({ run }) => run.adopted)
      const mark = areRows ? 'with the words of their own tables' : 'as “Timeout – auto-cleaned”'
      const question = `Mark ${plural(dead.length, 'dead run')} ${mark}?`
      return {
        action,
        text: (writer) => printSummary(writer, classified),
        question: dead.length === 0 ? null : question,
        only: new Set(dead.map(({ run }) => run.id)),
      }
    }
    case 'cancel': {
      const { sentences } = await cancel(context, await requireRun(context, action.run), {
        dryRun: true,
      })
      return makePlan(action, sentences, 'Cancel it?', [action.run])
    }
    case 'revert': {
      const said: string[] = []
      for (const run of action.runs)
        said.push(
          ...(await revert(context, await requireRun(context, run), { dryRun: true })).sentences,
        )
      const question = action.runs.length === 1 ? 'Take it back?' : 'Take them back?'
      return makePlan(action, said, question, action.runs)
    }
    case 'retry': {
      const chosen = await selectDeadLetters(
        context.store,
        { fingerprint: action.fingerprint },
        signal,
      )
      const { targets, runs, left, plan } = await previewRetry(context, chosen)
      const said = runs.map(({ run, targets: some, refused }) =>
        refused === null
          ? `- ${plural(some, 'target')} of run ${shortId(run)} would be put back in line.`
          : `- Run ${shortId(run)} is left alone: ${refused}`,
      )
      if (left > 0) said.push(`- ${plural(left, 'more target')} would be left for another time.`)
      const question = targets > 0 ? `Put ${plural(targets, 'target')} back in line?` : null
      return makePlan({ ...action, plan }, said, question, [])
    }
  }
}

/** Who leaves does not wait until it has listened long enough. */
function clockUntil(signal: AbortSignal): Clock {
  return { ...REAL_CLOCK, sleep: (ms) => REAL_CLOCK.sleep(ms, signal) }
}

function makePlan(
  action: Action,
  sentences: readonly string[],
  question: string | null,
  runs: readonly RunId[],
): Plan {
  const text: Plan['text'] = (writer) => {
    for (const sentence of sentences) if (sentence !== NOTHING_CHANGED) writer.paragraph(sentence)
  }
  return { action, text, question, only: new Set(runs) }
}

function confirmQuestion(count: number): string {
  return count === 1 ? 'Do this?' : `Do these ${count} things?`
}

/** Does what the plan showed, as far as it is still so, and nothing else. */
export async function applyPlan(
  context: OperatorContext,
  { action, only }: Plan,
  signal: AbortSignal,
): Promise<ActionResult> {
  switch (action.kind) {
    case 'recover': {
      // The plan has just listened: there is no need to do so again.
      const { verdicts } = await recover(context, { observer: TRUSTED_OBSERVER, only })
      const applied = verdicts.filter((verdict) => verdict.applied).length
      return {
        message: describeApplied('Recovery', applied, only.size),
        undo: revertibleRuns(verdicts),
      }
    }
    case 'clean': {
      const { dead } = await classifyRuns(context)
      const cleaned = await cleanRuns(
        context,
        dead.filter(({ run }) => only.has(run.id)),
      )
      const runs = cleaned.filter(({ applied }) => applied).map(({ run }) => run)
      return { message: describeApplied('Cleaning', runs.length, only.size), undo: runs }
    }
    case 'cancel': {
      const { sentences } = await cancel(context, await requireRun(context, action.run), {
        dryRun: false,
      })
      return { message: sentences.join(' '), undo: [action.run] }
    }
    case 'revert': {
      const said: string[] = []
      for (const run of action.runs)
        said.push(
          (await revert(context, await requireRun(context, run), { dryRun: false })).sentences[0]!,
        )
      return { message: said.join(' '), undo: [] }
    }
    case 'retry': {
      const chosen = await selectDeadLetters(
        context.store,
        { fingerprint: action.fingerprint },
        signal,
      )
      if (chosen.plan !== action.plan) {
        throw new RefusedError(
          'Nothing was changed: they are not the same ones now. Look again with r.',
        )
      }
      const { targets, left } = await retryDeadLetters(context, chosen, signal)
      const rest = left > 0 ? ` ${left} are left: r again.` : ''
      return { message: `${plural(targets, 'target')} back in line.${rest}`, undo: [] }
    }
  }
}

function describeApplied(what: string, applied: number, planned: number): string {
  const late = applied < planned ? `; ${planned - applied} had changed meanwhile` : ''
  return `${what}: ${applied} of ${plural(planned, 'thing')} done${late}.`
}

async function requireRun({ store }: OperatorContext, id: RunId): Promise<Run> {
  const run = await store.run(id)
  if (!run) throw new NotFoundError(`run ${shortId(id)}`, 'It was deleted meanwhile.')
  return run
}
