import * as v from 'valibot'
import { defineRoute, type Route } from '../../../contracts/route.ts'
import type { RunId } from '../../../core/model/id.ts'
import { isLive, type Run } from '../../../core/model/run.ts'
import { parseDuration, iso } from '../../../core/model/time.ts'
import type { Store } from '../../../core/store/store.ts'
import { METRICS_STORE } from '../../../features/metrics/store/store.ts'
import { findRun } from '../../../presenters/find.ts'
import { after, duration, id, limit, source } from '../request-fields.ts'
import {
  buildSeries,
  buildShortSeries,
  IDLE_SAMPLE_GAP_MS,
  runRange,
  seriesRange,
} from '../../../presenters/series.ts'
import { hubOf } from './hub.ts'
import { readRunLog } from './topics.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const SERIES_MAX_MS = 7 * 24 * HOUR_MS
const AFTER_END_MS = 2 * MINUTE_MS

/** The calls for events, series and logs. */
export const LIVE_ROUTES: readonly Route<any, any, any, any>[] = [
  defineRoute('GET /api/events', {
    summary: 'Changes as they happen: server-sent events.',
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
  defineRoute('GET /api/series', {
    summary: 'Pages, items and recoveries over time.',
    query: v.strictObject({
      since: v.optional(
        v.pipe(
          duration,
          v.check((text) => (parseDuration(text) ?? 0) <= SERIES_MAX_MS, 'is 7d at most'),
          v.description('`1h` if left out; with `run`, from its start to its end'),
        ),
      ),
      run: v.optional(id),
      source: v.optional(source),
    }),
    response: 'series',
    handle: async ({ query: { since, run, source }, server: { store } }) =>
      seriesOf(store, since === undefined ? null : parseDuration(since)!, {
        run: run === undefined ? undefined : await findRun(store, run),
        source,
      }),
  }),
  defineRoute('GET /api/runs/:run/log', {
    summary: 'The log of a run: the output of its command, or the journals of this machine.',
    params: v.strictObject({ run: id }),
    query: v.strictObject({ after, limit }),
    response: 'logPage',
    handle: async ({ params, query, server }) =>
      readRunLog(server, await findRun(server.store, params.run), query.after ?? null, query.limit),
  }),
]

/** Returns pages, items and recoveries per time step, for one run, one source or all. */
async function seriesOf(
  store: Store,
  forMs: number | null,
  { run, source }: { readonly run?: Run | undefined; readonly source?: string | undefined },
) {
  const now = await store.now()
  const only = { run: run?.id, source }
  const span =
    forMs === null && run ? runRange(run, SERIES_MAX_MS, now) : seriesRange(forMs ?? HOUR_MS, now)
  const { since, until, stepMs } = span
  const everyMinutes = stepMs / 60_000
  const metrics = await store.extend(METRICS_STORE)
  const from = since - stepMs
  const [still, samples, recoveries, runs] = await Promise.all([
    // Runs without progress are sampled hourly.
    metrics.samples({
      since: since - IDLE_SAMPLE_GAP_MS,
      until: from - 1,
      everyMinutes: 60,
      ...only,
    }),
    // The last sample of a run is taken after its end.
    metrics.samples({ since: from, until: until + AFTER_END_MS, everyMinutes, ...only }),
    metrics.recoveriesPerStep({ since, stepMs, ...only }),
    liveOf(store, only),
  ])
  const live = { runs: new Set(runs.map(({ id }) => id)), now }
  const end = run?.finishedAt ?? Infinity
  const timely = samples.map((sample) => ({ ...sample, at: Math.min(sample.at, end) }))
  const points =
    run && stepMs < MINUTE_MS
      ? buildShortSeries(samples, recoveries, span, run, now)
      : buildSeries([...still, ...timely], recoveries, span, live)
  return {
    since: iso(since),
    until: iso(until),
    stepSeconds: stepMs / 1_000,
    points: points.map(({ at, measuredMs, ...counts }) => ({
      at: iso(at),
      measuredSeconds: measuredMs / 1_000,
      ...counts,
    })),
  }
}

async function liveOf(
  store: Store,
  { run, source }: { readonly run: RunId | undefined; readonly source: string | undefined },
): Promise<Run[]> {
  if (run === undefined && source === undefined) {
    return (await store.liveRuns()).map((one) => one.run)
  }
  const found = run === undefined ? await store.liveRun(source!) : await store.run(run)
  return found && isLive(found.status) ? [found] : []
}
