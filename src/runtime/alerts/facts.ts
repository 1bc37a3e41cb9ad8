import type { AlertFacts } from '../../decide/alert.ts'
import { troubleOf } from '../../decide/run-trouble.ts'
import { STEADY } from '../../decide/sign.ts'
import type { Run } from '../../model/run.ts'
import type { Millis } from '../../model/time.ts'
import type { Store } from '../../store/store.ts'
import { judgeRuns, type PolicyOf } from '../judgement.ts'
import type { Orphans } from './orphans.ts'

/** Ended runs that are looked at for parked targets: the newest. */
const ENDED_MAX = 100

/** Looks at everything that a rule can ask for. */
export async function gatherFacts(
  store: Store,
  policyOf: PolicyOf,
  orphans: Orphans,
): Promise<AlertFacts & { readonly now: Millis }> {
  const now = await store.now()
  const [live, roll] = [await store.liveRuns(), await store.workers()]
  const look = { now, judge: STEADY, policyOf }
  const byAge = judgeRuns(live, roll, { ...look, forgetLost: true })
  const runs = judgeRuns(live, roll, look).map(({ run, policy, owner, decision }, n) =>
    troubleOf(
      { run, policy, decision, owner: owner?.reading ?? null, byAge: byAge[n]!.decision },
      now,
    ),
  )
  return {
    now,
    runs: runs.filter((one) => one !== null),
    parked: await parkedIn(
      store,
      live.map(({ run }) => run),
    ),
    orphans: await orphans.read(store, now),
    gaveUp: (await store.guards()).flatMap(({ source, gaveUp }) =>
      gaveUp ? [{ source, ...gaveUp }] : [],
    ),
  }
}

/** In live runs, and in those that ended and that no newer run of their source has followed. */
async function parkedIn(store: Store, live: readonly Run[]): Promise<AlertFacts['parked']> {
  const hasParked = ({ counts }: Run): boolean => counts.targets.parked > 0
  const { items } = await store.runs({ statuses: ['failed'], limit: ENDED_MAX })
  const parked = live.filter(hasParked)
  for (const run of items.filter(hasParked)) {
    const [newest] = (await store.runs({ source: run.source, limit: 1 })).items
    if (newest?.id === run.id) parked.push(run)
  }
  return Promise.all(
    parked.map(async ({ id, source, counts }) => {
      const [one] = (await store.targets(id, { statuses: ['parked'], limit: 1 })).items
      return { run: id, source, targets: counts.targets.parked, error: one?.lastError ?? null }
    }),
  )
}
