import type { Alert } from '../core/model/alert.ts'
import { iso } from '../core/model/time.ts'
import type { AssessContext } from '../core/recovery/assess.ts'
import { getStatus } from './status.ts'
import { listedRunView } from './runs.ts'
import { recentSamples } from './run-pace.ts'

/** Live runs that are shown one by one, the worst first; more are in the list of runs. */
const RUNS_MAX = 200

/** Returns what `status` reports and what the first screen shows besides. */
export async function getOverview(context: AssessContext) {
  const { store } = context
  const { data, live, alerts, now } = await getStatus(context)
  const [samples, totals] = await Promise.all([recentSamples(store, now), store.runTotals()])
  return {
    now: iso(now),
    ...data,
    state: data.severity === 'ok' ? (live.length > 0 ? 'well' : 'idle') : data.severity,
    liveRuns: live.length,
    runs: live
      .slice(0, RUNS_MAX)
      .map(({ run, health }) => listedRunView(run, health, samples, now)),
    alerts: alerts.map(alertView),
    totals,
  } as const
}

export function alertView({ since, lastSentAt, resolvedAt, ...alert }: Alert) {
  const { cause, rule, source, run, because, command } = alert
  return {
    cause,
    rule,
    source,
    run,
    because,
    command,
    since: iso(since),
    lastSentAt: lastSentAt === null ? null : iso(lastSentAt),
    resolvedAt: resolvedAt === null ? null : iso(resolvedAt),
  }
}
