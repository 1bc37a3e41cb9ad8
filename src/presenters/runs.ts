import type { Health, HealthState } from '../core/decide/health.ts'
import { isLive, type Run, type RunKind } from '../core/model/run.ts'
import type { Millis } from '../core/model/time.ts'
import type { Pace } from './pace.ts'
import { assess, type AssessContext } from '../core/recovery/assess.ts'
import type { Listing, RunFilter } from '../core/store/store.ts'
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

/** Returns the runs that match, newest first. The live ones are assessed all at once. */
export async function listRuns(
  context: AssessContext,
  filter: RunFilter,
): Promise<Listing<ListedRun>> {
  const { store } = context
  const { items, next } = await store.runs(filter)
  if (!items.some(({ status }) => isLive(status))) {
    const now = await store.now()
    return { items: items.map((run) => listedRunView(run, null, new Map(), now)), next }
  }
  const { runs, now } = await assess(context)
  const health = new Map(runs.map((one) => [one.run.id, one.health]))
  const samples = await recentSamples(store, now)
  return {
    items: items.map((run) => listedRunView(run, healthFor(health, run), samples, now)),
    next,
  }
}

/** Between the two looks it may have ended. */
function healthFor(health: ReadonlyMap<string, Health>, { id, status }: Run): Health | null {
  return isLive(status) ? (health.get(id) ?? null) : null
}
