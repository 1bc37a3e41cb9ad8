import * as v from 'valibot'
import { presentExplanation } from '../../../presenters/explain.ts'
import { UsageError } from '../../../core/model/errors.ts'
import { acknowledge } from '../../../presenters/acknowledge.ts'
import { actionsOfTargets } from '../../../presenters/allowed-target-actions.ts'
import { actionResultView, TARGETS_MAX } from '../../../presenters/action-result.ts'
import { park, resetTarget, rewind, unpark } from '../../../presenters/target-actions.ts'
import { findRun, findTarget, findTargets } from '../../../presenters/find.ts'
import { toJson } from '../../../presenters/presented.ts'
import { defineRoute } from '../../../contracts/route.ts'
import { acknowledgeFields, because, runRef, targetRef, wholeNumber } from '../request-fields.ts'

const targetParams = v.strictObject({ target: targetRef })
const dryRun = v.optional(v.boolean(), false)

/** One target, and operator actions on targets. */
export const TARGET_ROUTES = [
  defineRoute('GET /api/targets/:target', {
    summary: 'One target, its run, and why it is in its state.',
    params: targetParams,
    response: 'target',
    async handle({ params, context, server: { store, settings } }) {
      const found = await findTarget(store, params.target)
      const explanation = toJson(await presentExplanation(context, settings, found))
      const { run, target } = explanation
      const [actions] = await actionsOfTargets(store, [found])
      return { target: target!, run, explanation, actions: actions! }
    },
  }),

  defineRoute('POST /api/targets/park', {
    summary: 'Park targets, also claimed ones, until they are unparked.',
    body: v.strictObject({
      targets: v.pipe(v.array(targetRef), v.minLength(1), v.maxLength(TARGETS_MAX)),
      because,
      dryRun,
    }),
    response: 'actionResult',
    handle: async ({ body, context }) =>
      actionResultView(await park(context, await findTargets(context.store, body.targets), body)),
  }),

  defineRoute('POST /api/targets/:target/acknowledge', {
    summary: 'Mark one failed, stuck or parked target as seen.',
    params: targetParams,
    body: v.strictObject(acknowledgeFields),
    response: 'actionResult',
    async handle({ params, body, context }) {
      const targets = [await findTarget(context.store, params.target)]
      return actionResultView(await acknowledge(context, { runs: [], targets }, body))
    },
  }),

  defineRoute('POST /api/acknowledge', {
    summary: 'Mark runs and targets as seen: they no longer count as needing attention.',
    body: v.strictObject({
      runs: v.optional(v.pipe(v.array(runRef), v.maxLength(TARGETS_MAX)), []),
      targets: v.optional(v.pipe(v.array(targetRef), v.maxLength(TARGETS_MAX)), []),
      ...acknowledgeFields,
    }),
    response: 'actionResult',
    async handle({ body: { runs, targets, ...options }, context }) {
      const { store } = context
      if (runs.length + targets.length === 0)
        throw new UsageError('Which ones? Give `runs`, `targets`, or both.')
      const found = await Promise.all(runs.map((id) => findRun(store, id, 'acknowledge')))
      const selection = { runs: found, targets: await findTargets(store, targets) }
      return actionResultView(await acknowledge(context, selection, options))
    },
  }),

  defineRoute('POST /api/targets/:target/park', {
    summary: 'Park one target.',
    params: targetParams,
    body: v.strictObject({ because, dryRun }),
    response: 'actionResult',
    handle: async ({ params, body, context }) =>
      actionResultView(await park(context, [await findTarget(context.store, params.target)], body)),
  }),

  defineRoute('POST /api/targets/:target/unpark', {
    summary: 'Put one parked or stuck target back in the queue.',
    params: targetParams,
    body: v.strictObject({ dryRun }),
    response: 'actionResult',
    async handle({ params, body, context }) {
      const target = await findTarget(context.store, params.target)
      const run = await findRun(context.store, target.run)
      return actionResultView(await unpark(context, [run], { targets: [target], ...body }))
    },
  }),

  defineRoute('POST /api/targets/:target/reset', {
    summary: 'Put one failed target back in the queue.',
    params: targetParams,
    body: v.strictObject({ dryRun }),
    response: 'actionResult',
    handle: async ({ params, body, context }) =>
      actionResultView(
        await resetTarget(context, await findTarget(context.store, params.target), body.dryRun),
      ),
  }),

  defineRoute('POST /api/targets/:target/rewind', {
    summary: 'Move the cursor of a target back. Items stay.',
    params: targetParams,
    body: v.strictObject({
      to: wholeNumber(0),
      next: v.optional(v.pipe(v.string(), v.minLength(1), v.maxLength(8_000))),
      cursor: v.optional(v.unknown()),
      dryRun,
    }),
    response: 'actionResult',
    handle: async ({ params, body, context }) =>
      actionResultView(await rewind(context, await findTarget(context.store, params.target), body)),
  }),
]
