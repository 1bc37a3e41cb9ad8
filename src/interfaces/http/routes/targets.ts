import * as v from 'valibot'
import { explainEither, explanationView } from '../../../presenters/explain.ts'
import { doneView } from '../../../presenters/action-result.ts'
import { park, resetTarget, rewind, unpark } from '../../../presenters/target-actions.ts'
import { TARGETS_MAX } from '../../../presenters/undo.ts'
import { findTarget, findTargets } from '../../../presenters/find.ts'
import { runView, targetView } from '../../../presenters/view.ts'
import { defineRoute } from '../route.ts'
import { targetDetail } from '../../../presenters/schema/results.ts'
import { because, fullId, wholeNumber } from '../../../presenters/schema/common.ts'
import { done } from '../../../presenters/schema/recovery.ts'

const theTarget = v.strictObject({ target: fullId })
const dryRun = v.optional(v.boolean(), false)

/** One target, and what people do to some. */
export const TARGET_ROUTES = [
  defineRoute({
    method: 'GET',
    path: '/api/targets/:target',
    summary: 'One target, its run, and why it is what it is.',
    role: 'viewer',
    params: theTarget,
    answer: targetDetail,
    async handle({ params, door, ground: { store, settings } }) {
      const found = await findTarget(store, params.target)
      const answer = await explainEither(door, settings, found)
      const { run, target } = answer.explained
      return {
        target: targetView(target!),
        run: runView(run),
        explanation: explanationView(answer),
      }
    },
  }),

  defineRoute({
    method: 'POST',
    path: '/api/targets/park',
    summary: 'Set targets aside, whoever has them, until somebody puts them back.',
    role: 'operator',
    body: v.strictObject({
      targets: v.pipe(v.array(fullId), v.minLength(1), v.maxLength(TARGETS_MAX)),
      because,
      dryRun,
    }),
    answer: done,
    handle: async ({ body, door }) =>
      doneView(await park(door, await findTargets(door.store, body.targets), body)),
  }),

  defineRoute({
    method: 'POST',
    path: '/api/targets/:target/park',
    summary: 'Set one target aside.',
    role: 'operator',
    params: theTarget,
    body: v.strictObject({ because, dryRun }),
    answer: done,
    handle: async ({ params, body, door }) =>
      doneView(await park(door, [await findTarget(door.store, params.target)], body)),
  }),

  defineRoute({
    method: 'POST',
    path: '/api/targets/:target/unpark',
    summary: 'Put one parked or held target back in line.',
    role: 'operator',
    params: theTarget,
    body: v.strictObject({ dryRun }),
    answer: done,
    async handle({ params, body, door }) {
      const target = await findTarget(door.store, params.target)
      return doneView(await unpark(door, target.run, { targets: [target], ...body }))
    },
  }),

  defineRoute({
    method: 'POST',
    path: '/api/targets/:target/reset',
    summary: 'Put one failed target back in line.',
    role: 'operator',
    params: theTarget,
    body: v.strictObject({ dryRun }),
    answer: done,
    handle: async ({ params, body, door }) =>
      doneView(await resetTarget(door, await findTarget(door.store, params.target), body.dryRun)),
  }),

  defineRoute({
    method: 'POST',
    path: '/api/targets/:target/rewind',
    summary: 'Move the cursor of a target back: the one way it goes back. Items stay.',
    role: 'operator',
    params: theTarget,
    body: v.strictObject({
      to: wholeNumber(0),
      next: v.optional(v.pipe(v.string(), v.minLength(1), v.maxLength(8_000))),
      cursor: v.optional(v.unknown()),
      dryRun,
    }),
    answer: done,
    handle: async ({ params, body, door }) =>
      doneView(await rewind(door, await findTarget(door.store, params.target), body)),
  }),
]
