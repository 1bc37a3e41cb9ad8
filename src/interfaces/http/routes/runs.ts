import * as v from 'valibot'
import { LIVE_STATUSES, RUN_STATUSES } from '../../../core/model/run.ts'
import { TARGET_STATUSES } from '../../../core/model/target.ts'
import { parseDuration } from '../../../core/model/time.ts'
import { enqueueSource } from '../../../presenters/source-actions.ts'
import { presentExplanation } from '../../../presenters/explain.ts'
import { listRuns, presentRuns } from '../../../presenters/runs.ts'
import { measureProgress, presentProgress, PROGRESS_BY } from '../../../presenters/progress.ts'
import { toJson } from '../../../presenters/presented.ts'
import { loadRunReport, presentRun } from '../../../presenters/run.ts'
import { findRun } from '../../../presenters/find.ts'
import { presentTargets } from '../../../presenters/targets.ts'
import { runView } from '../../../presenters/view.ts'
import { defineRoute } from '../../../contracts/route.ts'
import * as common from '../request-fields.ts'

const runParams = v.strictObject({ run: common.runRef })

/** Reads of runs, and queueing one. */
export const RUN_ROUTES = [
  defineRoute('GET /api/runs', {
    summary: 'Runs, newest first.',
    query: v.strictObject({
      status: common.several(v.picklist([...RUN_STATUSES, 'live'])),
      source: v.optional(common.source),
      q: v.optional(common.text),
      since: v.optional(common.duration),
      limit: common.limit,
      after: common.afterId,
    }),
    response: 'runs',
    async handle({ query, context }) {
      const { store } = context
      const { status, source, q, since, limit, after } = query
      const statuses = status.flatMap((one) => (one === 'live' ? LIVE_STATUSES : [one]))
      const list = await listRuns(context, {
        source,
        statuses: statuses.length > 0 ? [...new Set(statuses)] : undefined,
        search: q || undefined,
        createdSince: since === undefined ? undefined : (await store.now()) - parseDuration(since)!,
        limit,
        after,
      })
      return presentRuns(list).view
    },
  }),

  defineRoute('POST /api/runs', {
    summary: "Queue a run of a command's source.",
    body: v.strictObject({ source: common.source, input: v.optional(v.unknown(), null) }),
    response: 'run',
    status: 201,
    handle: async ({ body, server: { store, settings } }) =>
      runView(await enqueueSource(store, settings, body.source, body.input)),
  }),

  defineRoute('GET /api/runs/:run', {
    summary: 'One run: its facts, counts, failed targets and history.',
    params: runParams,
    response: 'runDetail',
    handle: async ({ params, context }) =>
      toJson(presentRun(await loadRunReport(context, await findRun(context.store, params.run)))),
  }),

  defineRoute('GET /api/runs/:run/explain', {
    summary: 'Why a run is in its state: evidence, policy, verdict, and what would change it.',
    params: runParams,
    response: 'explanation',
    async handle({ params, context, server: { store, settings } }) {
      const run = await findRun(store, params.run)
      return toJson(await presentExplanation(context, settings, run))
    },
  }),

  defineRoute('GET /api/runs/:run/progress', {
    summary: 'How far a run is, by group, page or status.',
    params: runParams,
    query: v.strictObject({
      by: v.optional(v.picklist(PROGRESS_BY)),
      group: common.several(common.text),
    }),
    response: 'progress',
    async handle({ params, query, server: { store } }) {
      const run = await findRun(store, params.run)
      const found = await measureProgress(store, [run], { groups: query.group, by: query.by })
      return presentProgress(found, await store.now()).view
    },
  }),

  defineRoute('GET /api/runs/:run/targets', {
    summary: 'Targets of a run.',
    params: runParams,
    query: v.strictObject({
      status: common.several(v.picklist(TARGET_STATUSES)),
      group: v.optional(v.pipe(common.text, v.description('Empty: those without a group'))),
      q: v.optional(common.text),
      limit: common.limit,
      after: common.afterId,
    }),
    response: 'targets',
    // A search without a match reads the whole run.
    isExpensive: ({ q }) => Boolean(q),
    async handle({ params, query, server: { store } }) {
      const run = await findRun(store, params.run, 'targets')
      const { status, group, q, limit, after } = query
      const list = await store.targets(run.id, {
        statuses: status.length > 0 ? status : undefined,
        group,
        search: q || undefined,
        limit,
        after,
      })
      return presentTargets(run, list).view
    },
  }),
]
