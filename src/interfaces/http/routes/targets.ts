import * as v from 'valibot'
import { presentExplanation } from '../../../presenters/explain.ts'
import { actionsOfTargets } from '../../../presenters/allowed-actions.ts'
import { actionResultView, TARGETS_MAX } from '../../../presenters/action-result.ts'
import { park, resetTarget, rewind, unpark } from '../../../presenters/target-actions.ts'
import { findRun, findTarget, findTargets } from '../../../presenters/find.ts'
import { toJson } from '../../../presenters/presented.ts'
import { defineRoute } from '../../../contracts/route.ts'
import { because, fullId, wholeNumber } from '../request-fields.ts'

const targetParams = v.strictObject({ target: fullId })
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
      targets: v.pipe(v.array(fullId), v.minLength(1), v.maxLength(TARGETS_MAX)),
      because,
      dryRun,
    }),
    response: 'actionResult',
    handle: async ({ body, context }) =>
      actionResultView(await park(context, await findTargets(context.store, body.targets), body)),
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
