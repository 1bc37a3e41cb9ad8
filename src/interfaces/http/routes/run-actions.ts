import * as v from 'valibot'
import { RefusedError, UsageError } from '../../../core/model/errors.ts'
import { shortId } from '../../../core/model/id.ts'
import { unstuckCommand } from '../../../lib/text/shell-command.ts'
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
import { actionResultView, type ActionResult } from '../../../presenters/action-result.ts'
import {
  cancel,
  resume,
  retry,
  revert,
  type ActionRequest,
} from '../../../presenters/run-actions.ts'
import { resetFailed, unpark } from '../../../presenters/target-actions.ts'
import { findRun, findTargets } from '../../../presenters/find.ts'
import { defineRoute } from '../../../contracts/route.ts'
import { because, fullId, id, text, wholeNumber } from '../request-fields.ts'

const runParams = v.strictObject({ run: id })
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
      const run = await findRun(context.store, params.run)
      return actionResultView(await resetFailed(context, [run], body))
    },
  }),

  defineRoute('POST /api/runs/:run/unpark', {
    summary: 'Put parked and stuck targets back in the queue, from their last saved pages.',
    params: runParams,
    body: v.strictObject({
      targets: v.optional(v.pipe(v.array(fullId), v.minLength(1), v.maxLength(TARGETS_MAX))),
      groups,
      dryRun,
    }),
    response: 'actionResult',
    async handle({ params, body, context }) {
      const run = await findRun(context.store, params.run)
      const targets = body.targets && (await findTargets(context.store, body.targets))
      for (const target of targets ?? []) {
        if (target.run === run.id) continue
        throw new UsageError(`Target ${shortId(target.id)} is not one of run ${shortId(run.id)}.`)
      }
      return actionResultView(await unpark(context, [run], { ...body, targets }))
    },
  }),

  defineRoute('DELETE /api/runs/:run', {
    summary: 'Delete a dead or ended run for good, with its targets and files.',
    params: runParams,
    body: v.strictObject({
      confirm: v.optional(
        v.pipe(text, v.description('`delete ` and the last 8 digits of the run’s id')),
      ),
      withItems: v.optional(v.boolean(), false),
      dryRun,
    }),
    response: 'deletion',
    async handle({ params, body, context, server: { dataFolder: base } }) {
      const { withItems, dryRun } = body
      const run = await findRun(context.store, params.run)
      const chosen = selectRuns(await classifyRuns(context), [run], true)
      const planned = await planDeletion(context.store, [run], { base, withItems })
      const command = unstuckCommand('clean', [shortId(run.id)], { delete: true, withItems })
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
        const plan = { run: run.id, source: run.source, targets, items, folders: [...folders] }
        return view(plan, [])
      }
      const words = `delete ${shortId(run.id)}`
      if (body.confirm !== words) {
        throw new UsageError(`Nothing was deleted: confirm must be "${words}".`)
      }
      const { dead } = chosen.classified
      const { deleted, failures } = await applyDeletion(context, planned, { dead, withItems })
      const [gone] = deleted
      if (!gone) {
        throw new RefusedError(`Run ${shortId(run.id)} changed meanwhile: it was left alone.`)
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
    handle: async ({ params, body, context }) =>
      actionResultView(await act(context, await findRun(context.store, params.run), body)),
  })
}
