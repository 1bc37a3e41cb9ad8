import * as v from 'valibot'
import { parseDuration } from '../../../core/model/time.ts'
import { adviseStart, presentCheck } from '../../../presenters/check.ts'
import { loadSummary } from '../../../presenters/cleaning.ts'
import { listPolicies } from '../../../presenters/policy-settings.ts'
import { loadOverview, presentOverview } from '../../../presenters/overview.ts'
import { toJson } from '../../../presenters/presented.ts'
import type { Store } from '../../../core/store/store.ts'
import { sectionViews } from '../../../app/config.ts'
import { assess } from '../../../core/recovery/assess.ts'
import { presentWorkers } from '../../../presenters/workers.ts'
import { defineRoute } from '../../../contracts/route.ts'
import { duration, source } from '../request-fields.ts'

/** Reads that cover all runs. */
export const OVERVIEW_ROUTES = [
  defineRoute('GET /api/overview', {
    summary: 'Is anything stuck? Live runs, workers, and what needs attention.',
    response: 'overview',
    handle: async ({ context }) => toJson(presentOverview(await loadOverview(context))),
  }),

  defineRoute('GET /api/workers', {
    summary: 'Workers, their last heartbeats, and their liveness.',
    query: v.strictObject({ older: v.optional(duration) }),
    response: 'workers',
    handle: async ({ query, context }) =>
      presentWorkers(await assess(context), parseDuration(query.older) ?? undefined).view,
  }),

  defineRoute('GET /api/check/:source', {
    summary: 'Before a start: start, resume, clean or wait, and why.',
    params: v.strictObject({ source }),
    query: v.strictObject({ age: v.optional(duration) }),
    response: 'advice',
    async handle({ params, query, context }) {
      const age = parseDuration(query.age) ?? undefined
      const advice = await adviseStart(context, params.source, age)
      return toJson(presentCheck(params.source, advice, await context.store.now()))
    },
  }),

  defineRoute('GET /api/summary', {
    summary: 'Live runs: active, resumable, dead; and how many have ended.',
    query: v.strictObject({ age: v.optional(duration) }),
    response: 'summary',
    handle: async ({ query, context }) =>
      toJson(await loadSummary(context, parseDuration(query.age) ?? undefined)),
  }),

  defineRoute('GET /api/config', {
    summary: 'The settings that apply, each with its origin.',
    query: v.strictObject({ source: v.optional(source) }),
    response: 'config',
    handle: async ({ query, server: { settings, store } }) => ({
      path: settings.path,
      // The origin of the address is known only where the server was started.
      db: { address: addressOf(store), origin: null },
      preset: settings.preset,
      policies: listPolicies(settings, query).map(({ source, settings }) => ({
        source,
        settings: [...settings],
      })),
      ...(await sectionViews(settings)),
    }),
  }),
]

/** Without secrets. */
function addressOf({ engine, location }: Store): string {
  return engine === 'sqlite' ? `sqlite:${location}` : location
}
