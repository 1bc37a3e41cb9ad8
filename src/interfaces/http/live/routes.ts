import * as v from 'valibot'
import { parseDuration } from '../../../core/model/time.ts'
import { alertView } from '../../../presenters/overview.ts'
import { findRun } from '../../../presenters/find.ts'
import { defineRoute, type Route } from '../route.ts'
import { after, duration, id, limit, source } from '../../../presenters/schema/common.ts'
import { alert, logPage, series } from '../../../presenters/schema/overview.ts'
import { hubOf } from './hub.ts'
import { scrape } from './metrics.ts'
import { readRunLog } from './run-log.ts'
import { seriesOf } from './series.ts'
import { ALERT_STORE } from '../../../features/alerts/store/store.ts'

const SERIES_MAX_MS = 7 * 86_400_000
const RECENT_ALERTS = 50

/** The calls for events, series, logs, metrics and alerts. */
export const LIVE_ROUTES: readonly Route<any, any, any, any>[] = [
  defineRoute({
    method: 'GET',
    path: '/api/events',
    summary: 'What changes, as it changes: server-sent events.',
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
    summary:
      'What a run said: the output of its command, or what journals on this machine say of it.',
    role: 'viewer',
    params: v.strictObject({ run: id }),
    query: v.strictObject({ after, limit }),
    response: logPage,
    handle: async ({ params, query, server }) =>
      readRunLog(server, await findRun(server.store, params.run), query.after ?? null, query.limit),
  }),
  defineRoute({
    method: 'GET',
    path: '/api/alerts',
    summary: 'Alerts that are open, and those that were resolved last.',
    role: 'viewer',
    response: v.object({ open: v.array(alert), recent: v.array(alert) }),
    handle: async ({ server: { store } }) => {
      const alerts = await store.extend(ALERT_STORE)
      return {
        open: (await alerts.openAlerts()).map(alertView),
        recent: (await alerts.recentAlerts(RECENT_ALERTS)).map(alertView),
      }
    },
  }),
  defineRoute({
    method: 'GET',
    path: '/metrics',
    summary: 'Metrics in the text format of Prometheus.',
    role: 'viewer',
    response: null,
    produces: ['text/plain'],
    handle: ({ server }) => scrape(server),
  }),
]
