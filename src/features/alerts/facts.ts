import type { AlertFacts } from './decide.ts'
import type { Alert, AlertCandidate } from './store/store.ts'
import type { Run } from '../../core/model/run.ts'
import type { Millis } from '../../core/model/time.ts'
import type { Store } from '../../core/store/store.ts'
import { LATEST_FAILED_MAX } from '../../core/store/reads.ts'
import { assess, type AssessContext } from '../../core/recovery/assess.ts'
import { loadContinuations } from '../../presenters/continuation.ts'
import { gaveUpUnacknowledged, loadAcknowledged } from '../../presenters/acknowledged.ts'
import {
  failedWithAlert,
  gaveUpCandidate,
  parkedCandidate,
  runCandidate,
  withParked,
} from '../../presenters/alert-causes.ts'
import type { OrphanTracker } from '../../presenters/orphan-alerts.ts'

/** Reads what the rules are matched with. The sentences are those of `status` and the dashboard. */
export async function collectFacts(
  context: AssessContext,
  orphanTracker: OrphanTracker,
  open: readonly Alert[],
): Promise<AlertFacts & { readonly now: Millis }> {
  const { store } = context
  const { now, runs, locks } = await assess(context)
  const live = runs.map(({ run }) => run)
  const continuations = await loadContinuations(context, runs)
  return {
    now,
    found: [
      ...runs.flatMap((one) => runCandidate(one, continuations, now) ?? []),
      ...(await parkedCandidates(store, live, open)),
      ...gaveUpUnacknowledged(locks).map(gaveUpCandidate),
    ],
    orphans: await orphanTracker.read(store, now),
  }
}

/**
 * Returns parked targets of live runs that are not acknowledged, and of failed runs without a newer run of their source. The latter are read up to
 * a limit; a run with an open alert is read on its own, so that its alert is not resolved because others came after it.
 */
async function parkedCandidates(
  store: Store,
  live: readonly Run[],
  open: readonly Alert[],
): Promise<AlertCandidate[]> {
  const failed = await store.runs({ latestFailed: true, limit: LATEST_FAILED_MAX })
  const listed = [...live, ...failed.items]
  const known = new Set(listed.map(({ id }) => id))
  const parked = [...listed, ...(await failedWithAlert(store, open, known))].filter(
    ({ counts }) => counts.targets.parked > 0,
  )
  const acknowledged = await loadAcknowledged(store, parked)
  return Promise.all(
    withParked(parked, acknowledged).map(async (run) => {
      const filter = { statuses: ['parked'], acknowledged: false, limit: 1 } as const
      const [one] = (await store.targets(run.id, filter)).items
      return parkedCandidate(run, one?.lastError ?? null)
    }),
  )
}
