import type { Alert } from '../core/model/alert.ts'
import { iso } from '../core/model/time.ts'
import type { PolicyOf } from '../core/recovery/assess.ts'
import type { Store } from '../core/store/store.ts'
import { isStuck, type HealthState } from './health.ts'
import { getStatus, type StatusReport } from './status.ts'
import { listedRunView } from './runs.ts'
import { recentSamples } from './run-pace.ts'

/** Live runs that are shown one by one: beyond, a person reads a list of runs. */
const RUNS_MAX = 200
const WORST_FIRST: readonly HealthState[] = [
  'orphaned',
  'dead',
  'stalled',
  'interrupted',
  'waiting',
  'healthy',
]

/** What `status` answers, with what the first screen shows besides. */
export async function getOverview(store: Store, policyOf: PolicyOf) {
  const report = await getStatus(store, policyOf)
  const { data, live, now } = report
  const [samples, alerts, totals] = await Promise.all([
    recentSamples(store, now),
    store.openAlerts(),
    store.runTotals(),
  ])
  return {
    now: iso(now),
    ...data,
    state: overviewState(report),
    liveRuns: live.length,
    runs: worstRuns(live).map(({ run, health }) => listedRunView(run, health, samples, now)),
    alerts: alerts.map(alertView),
    totals,
  }
}

/** All of them, or when there are too many those that fare worst. */
function worstRuns(live: StatusReport['live']): StatusReport['live'] {
  if (live.length <= RUNS_MAX) return live
  const rank = ({ health }: StatusReport['live'][number]) => WORST_FIRST.indexOf(health.state)
  return live.toSorted((a, b) => rank(a) - rank(b)).slice(0, RUNS_MAX)
}

/** The worst that can be said of all of it. */
function overviewState({ data, live }: StatusReport): 'stuck' | 'attention' | 'well' | 'idle' {
  if (live.some(({ health }) => isStuck(health))) return 'stuck'
  if (data.attention.length > 0) return 'attention'
  return live.length > 0 ? 'well' : 'idle'
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
