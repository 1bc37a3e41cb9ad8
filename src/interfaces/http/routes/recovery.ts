import * as v from 'valibot'
import { cleanByPlan, recoverByPlan } from '../../../presenters/apply-plan.ts'
import { findRunToChange } from '../../../presenters/find.ts'
import { duration, plan, runRef, several, source, text } from '../request-fields.ts'
import { defineRoute } from '../../../contracts/route.ts'

const dryRun = v.optional(v.boolean(), false)
const many = <T extends v.BaseSchema<unknown, string, v.BaseIssue<unknown>>>(of: T) =>
  v.optional(v.pipe(v.array(of), v.maxLength(50)), [])

/** Recovery and cleaning, each with a preview. A confirmed action applies what its preview showed, or is refused. */
export const RECOVERY_ROUTES = [
  defineRoute('GET /api/recovery', {
    summary: 'What recovery would apply now.',
    query: v.strictObject({
      timeout: v.optional(duration),
      source: several(source),
      group: several(text),
    }),
    response: 'recovery',
    isExpensive: true,
    handle({ query: { timeout, source: sources, group: groups }, context, signal }) {
      return recoverByPlan(context, { dryRun: true, timeout, sources, groups, signal })
    },
  }),

  defineRoute('POST /api/recovery', {
    summary:
      'Recover the targets of dead and silent workers now. Living workers keep their claims.',
    body: v.strictObject({
      timeout: v.optional(duration),
      sources: many(source),
      groups: many(text),
      plan: v.optional(plan),
      dryRun,
    }),
    response: 'recovery',
    handle: ({ body, context, signal }) => recoverByPlan(context, { ...body, signal }),
  }),

  defineRoute('GET /api/clean', {
    summary: 'Resumable and dead runs side by side.',
    query: v.strictObject({ age: v.optional(duration) }),
    response: 'cleaning',
    handle: ({ query, context }) => cleanByPlan(context, undefined, { ...query, dryRun: true }),
  }),

  defineRoute('POST /api/clean', {
    summary: 'Mark dead runs as “Timeout – auto-cleaned”. Nothing is deleted.',
    body: v.strictObject({
      runs: v.optional(v.pipe(v.array(runRef), v.minLength(1), v.maxLength(500))),
      age: v.optional(duration),
      plan: v.optional(plan),
      dryRun,
    }),
    response: 'cleaning',
    async handle({ body: { runs, ...request }, context }) {
      const find = (run: string) => findRunToChange(context.store, run, 'clean')
      return cleanByPlan(context, runs && (await Promise.all(runs.map(find))), request)
    },
  }),
]
