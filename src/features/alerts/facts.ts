import type { AlertFacts } from './decide.ts'
import { findRunProblem } from './run-problem.ts'
import { TRUSTED_OBSERVER } from '../../core/decide/liveness.ts'
import type { Alert } from '../../core/model/alert.ts'
import type { RunId } from '../../core/model/id.ts'
import type { Run } from '../../core/model/run.ts'
import type { Millis } from '../../core/model/time.ts'
import type { Store } from '../../core/store/store.ts'
import { assessRuns, type PolicyOf } from '../../core/recovery/assess.ts'
import type { OrphanTracker } from './orphan-tracker.ts'

/** Looks at everything that a rule can ask for. */
export async function collectFacts(
  store: Store,
  policyOf: PolicyOf,
  orphanTracker: OrphanTracker,
  open: readonly Alert[],
): Promise<AlertFacts & { readonly now: Millis }> {
  const now = await store.now()
  const [live, observations] = [await store.liveRuns(), await store.observations()]
  const options = { now, observer: TRUSTED_OBSERVER, policyOf }
  const byAge = assessRuns(live, observations, { ...options, ignoreLostOwner: true })
  const runs = assessRuns(live, observations, options).map(({ run, policy, owner, decision }, n) =>
    findRunProblem(
      {
        run,
        policy,
        decision,
        owner: owner?.assessment ?? null,
        decisionByAge: byAge[n]!.decision,
      },
      now,
    ),
  )
  return {
    now,
    runs: runs.filter((one) => one !== null),
    parked: await findParked(
      store,
      live.map(({ run }) => run),
      open,
    ),
    orphans: await orphanTracker.read(store, now),
    gaveUp: (await store.sourceLocks()).flatMap(({ source, gaveUp }) =>
      gaveUp ? [{ source, ...gaveUp }] : [],
    ),
  }
}

/**
 * In live runs, and in those that ended and that no newer run of their source has followed. The latter are looked at up to
 * a limit, so one that people were told of is looked at by itself: it is not over because others came after it.
 */
async function findParked(
  store: Store,
  live: readonly Run[],
  open: readonly Alert[],
): Promise<AlertFacts['parked']> {
  const parked = new Map<RunId, Run>()
  const check = (run: Run): void => {
    if (run.counts.targets.parked > 0) parked.set(run.id, run)
  }
  for (const run of [...live, ...(await store.lastFailed())]) check(run)
  for (const { rule, run: id } of open) {
    // Of one in a table that is away nothing can be said, and nothing is resolved meanwhile.
    if (rule !== 'parked' || id === null || parked.has(id) || store.unreadable.length > 0) continue
    const run = await store.run(id)
    if (run?.status !== 'failed') continue
    const [newest] = (await store.runs({ source: run.source, limit: 1 })).items
    if (newest?.id === id) check(run)
  }
  return Promise.all(
    [...parked.values()].map(async ({ id, source, counts }) => {
      const [one] = (await store.targets(id, { statuses: ['parked'], limit: 1 })).items
      return { run: id, source, targets: counts.targets.parked, error: one?.lastError ?? null }
    }),
  )
}
