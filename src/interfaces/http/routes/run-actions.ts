import { runName } from '../../../core/model/traits.ts'
import * as v from 'valibot'
import { RefusedError, UsageError } from '../../../core/model/errors.ts'
import { shortId } from '../../../core/model/id.ts'
import { unstuckCommand } from '../../../core/model/shell-command.ts'
import type { Run } from '../../../core/model/run.ts'
import { classifyRuns } from '../../../core/recovery/clean.ts'
import type { OperatorContext } from '../../../core/recovery/context.ts'
import { selectRuns } from '../../../presenters/cleaning.ts'
import {
  applyDeletion,
  deletionSummary,
  planDeletion,
  type DeletedRun,
} from '../../../presenters/deletion.ts'
import { acknowledge } from '../../../presenters/acknowledge.ts'
import { actionResultView, type ActionResult } from '../../../presenters/action-result.ts'
import {
  cancel,
  fail,
  resume,
  retry,
  revert,
  type ActionRequest,
} from '../../../presenters/run-actions.ts'
import { resetFailed, unpark } from '../../../presenters/target-actions.ts'
import { findRun, findRunToChange, findTargets } from '../../../presenters/find.ts'
import { defineRoute } from '../../../contracts/route.ts'
import {
  acknowledgeFields,
  because,
  runRef,
  targetRef,
  text,
  wholeNumber,
} from '../request-fields.ts'

const runParams = v.strictObject({ run: runRef })
const dryRun = v.optional(v.boolean(), false)
const groups = v.optional(v.pipe(v.array(text), v.minLength(1), v.maxLength(50)))
const TARGETS_MAX = 500

/** Operator actions on one run. */
export const RUN_ACTION_ROUTES = [
  runActionRoute(
    cancel,
    'cancel',
    'End a live run. Its workers stop at the end of their current page.',
  ),
  runActionRoute(fail, 'fail', 'End a live row of a table of your own as failed.'),
  runActionRoute(resume, 'resume', 'Reopen an ended run. It continues from its last saved pages.'),
  runActionRoute(retry, 'retry', 'Queue a new run that starts this one over. Saved items stay.'),
  runActionRoute(revert, 'revert', 'Undo the last clean, cancel, fail or recovery of a run.'),

  defineRoute('POST /api/runs/:run/reset-failed', {
    summary: 'Put failed targets back in the queue, from their last saved pages.',
    params: runParams,
    body: v.strictObject({
      groups,
      maxAttempts: v.optional(wholeNumber(1)),
      dryRun,
    }),
    response: 'actionResult',
    async handle({ params, body, context }) {
      const run = await findRunToChange(context.store, params.run, 'reset-failed')
      return actionResultView(await resetFailed(context, [run], body))
    },
  }),

  defineRoute('POST /api/runs/:run/unpark', {
    summary: 'Put parked and stuck targets back in the queue, from their last saved pages.',
    params: runParams,
    body: v.strictObject({
      targets: v.optional(v.pipe(v.array(targetRef), v.minLength(1), v.maxLength(TARGETS_MAX))),
      groups,
      dryRun,
    }),
    response: 'actionResult',
    async handle({ params, body, context }) {
      const run = await findRunToChange(context.store, params.run, 'unpark --run')
      const targets = body.targets && (await findTargets(context.store, body.targets))
      for (const target of targets ?? []) {
        if (target.run === run.id) continue
        throw new UsageError(`Target ${shortId(target.id)} is not one of run ${runName(run)}.`)
      }
      return actionResultView(await unpark(context, [run], { ...body, targets }))
    },
  }),

  defineRoute('POST /api/runs/:run/acknowledge', {
    summary: 'Mark a failed run, and its failed, stuck and parked targets, as seen.',
    params: runParams,
    body: v.strictObject({ groups, ...acknowledgeFields }),
    response: 'actionResult',
    async handle({ params, body: { groups, ...options }, context }) {
      const runs = [await findRun(context.store, params.run, 'acknowledge')]
      return actionResultView(await acknowledge(context, { runs, groups }, options))
    },
  }),

  defineRoute('DELETE /api/runs/:run', {
    summary: 'Delete a dead or ended run for good, with its targets and files.',
    params: runParams,
    body: v.strictObject({
      confirm: v.optional(
        v.pipe(
          text,
          v.description(
            '`delete ` and the last 8 digits of the run’s id, or the name of the row (`courses:4711`)',
          ),
        ),
      ),
      withItems: v.optional(v.boolean(), false),
      dryRun,
    }),
    response: 'deletion',
    async handle({ params, body, context, server: { dataFolder: base } }) {
      const { withItems, dryRun } = body
      const run = await findRunToChange(context.store, params.run, 'clean --delete')
      const chosen = selectRuns(await classifyRuns(context), [run], true)
      const planned = await planDeletion(context.store, [run], { base, withItems })
      const command = unstuckCommand('clean', [runName(run)], { delete: true, withItems })
      const [{ targets, items, folders }] = planned as [(typeof planned)[number]]
      const view = (one: DeletedRun, failures: string[]) => ({
        ...one,
        failures,
        count: 1,
        summary: deletionSummary(one, failures, dryRun),
        dryRun,
        undo: null,
        command,
      })
      if (dryRun) {
        const { id, source, traits } = run
        const plan = { run: id, source, origin: traits.origin, targets, items }
        return view({ ...plan, folders: [...folders] }, [])
      }
      const words = `delete ${runName(run)}`
      if (body.confirm !== words) {
        throw new UsageError(`Nothing was deleted: confirm must be "${words}".`)
      }
      const { dead } = chosen.classified
      const { deleted, failures } = await applyDeletion(context, planned, { dead, withItems })
      const [gone] = deleted
      if (!gone) {
        throw new RefusedError(`Run ${runName(run)} changed meanwhile: it was left alone.`)
      }
      return view(gone, failures)
    },
  }),
]

/** The four that take a run and nothing but a reason. */
function runActionRoute(
  act: (context: OperatorContext, run: Run, request: ActionRequest) => Promise<ActionResult>,
  verb: string,
  summary: string,
) {
  return defineRoute(`POST /api/runs/:run/${verb}`, {
    summary,
    params: runParams,
    body: v.strictObject({ dryRun, because }),
    response: 'actionResult',
    async handle({ params, body, context }) {
      const run = await findRunToChange(context.store, params.run, verb)
      return actionResultView(await act(context, run, body))
    },
  })
}
