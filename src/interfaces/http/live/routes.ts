import * as v from 'valibot'
import { parseDuration } from '../../../core/model/time.ts'
import { findRun } from '../../../presenters/find.ts'
import { defineRoute, type Route } from '../../../contracts/route.ts'
import { after, duration, id, limit, source } from '../../../presenters/schema/common.ts'
import { logPage, series } from '../../../presenters/schema/overview.ts'
import { hubOf } from './hub.ts'
import { readRunLog } from './run-log.ts'
import { seriesOf } from './series.ts'

const SERIES_MAX_MS = 7 * 86_400_000

/** The calls for events, series and logs. */
export const LIVE_ROUTES: readonly Route<any, any, any, any>[] = [
  defineRoute({
    method: 'GET',
    path: '/api/events',
    summary: 'Changes as they happen: server-sent events.',
    role: 'viewer',
    query: v.strictObject({
      topics: v.pipe(
        v.string(),
        v.maxLength(500),
        v.description('A comma between: overview, workers, trail, run:ID, log:ID'),
      ),
    }),
    response: null,
    produces: ['text/event-stream'],
    handle: async ({ query, caller, server, signal, isAllowed, lastEventId }) =>
      hubOf(server).listen({
        topics: query.topics.split(','),
        caller,
        signal,
        isAllowed,
        lastEventId,
      }),
  }),
  defineRoute({
    method: 'GET',
    path: '/api/series',
    summary: 'Pages, items and recoveries over time.',
    role: 'viewer',
    query: v.strictObject({
      since: v.optional(
        v.pipe(
          duration,
          v.check((text) => (parseDuration(text) ?? 0) <= SERIES_MAX_MS, 'is 7d at most'),
        ),
        '1h',
      ),
      run: v.optional(id),
      source: v.optional(source),
    }),
    response: series,
    handle: async ({ query: { since, run, source }, server: { store } }) =>
      seriesOf(store, parseDuration(since)!, {
        ...(run !== undefined && { run: (await findRun(store, run)).id }),
        ...(source !== undefined && { source }),
      }),
  }),
  defineRoute({
    method: 'GET',
    path: '/api/runs/:run/log',
    summary: 'The log of a run: the output of its command, or the journals of this machine.',
    role: 'viewer',
    params: v.strictObject({ run: id }),
    query: v.strictObject({ after, limit }),
    response: logPage,
    handle: async ({ params, query, server }) =>
      readRunLog(server, await findRun(server.store, params.run), query.after ?? null, query.limit),
  }),
]
