import { TRUSTED_OBSERVER } from '../core/decide/liveness.ts'
import { isLive, type Run, type RunKind } from '../core/model/run.ts'
import type { Millis } from '../core/model/time.ts'
import type { Pace } from './pace.ts'
import { assessRuns, type PolicyOf } from '../core/recovery/assess.ts'
import type { Listing, RunFilter, Store } from '../core/store/store.ts'
import { healthOf, type Health, type HealthState } from './health.ts'
import { runView, type RunView } from './view.ts'
import { paceOf, recentSamples, type RecentSamples } from './run-pace.ts'

/** A run as lists show it: with how it fares and how fast it goes. */
export type ListedRun = RunView & {
  pages: number
  /** False while targets still come in. */
  planned: boolean
  kind: RunKind
  /** Null for a run that has ended. */
  health: HealthState | null
  because: string | null
  pace: Pace | null
}

export function listedRunView(
  run: Run,
  health: Health | null,
  samples: RecentSamples,
  now: Millis,
): ListedRun {
  return {
    ...runView(run),
    pages: run.counts.pages,
    planned: run.plannedAt !== null,
    kind: run.kind,
    health: health?.state ?? null,
    because: health?.because ?? null,
    pace: paceOf(samples, run, now),
  }
}

/** Runs that fit, newest first. However many there are, the live ones are judged all at once. */
export async function listRuns(
  store: Store,
  policyOf: PolicyOf,
  filter: RunFilter,
): Promise<Listing<ListedRun>> {
  const { items, next } = await store.runs(filter)
  const now = await store.now()
  const isAnyLive = items.some(({ status }) => isLive(status))
  const health = isAnyLive
    ? await healthOfLiveRuns(store, policyOf, now)
    : new Map<string, Health>()
  const samples: RecentSamples = isAnyLive ? await recentSamples(store, now) : new Map()
  return {
    items: items.map((run) => listedRunView(run, healthFor(health, run), samples, now)),
    next,
  }
}

async function healthOfLiveRuns(
  store: Store,
  policyOf: PolicyOf,
  now: Millis,
): Promise<Map<string, Health>> {
  const [live, workerViews] = await Promise.all([store.liveRuns(), store.observations()])
  const assessed = assessRuns(live, workerViews, { now, observer: TRUSTED_OBSERVER, policyOf })
  return new Map(assessed.map((one) => [one.run.id, healthOf(one, now)]))
}

/** Between the two looks it may have ended. */
function healthFor(health: ReadonlyMap<string, Health>, { id, status }: Run): Health | null {
  return isLive(status) ? (health.get(id) ?? null) : null
}
