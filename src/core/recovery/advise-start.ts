import { TRUSTED_OBSERVER } from '../decide/liveness.ts'
import { decideStart, type StartAction } from '../decide/start.ts'
import { StoreUnavailableError } from '../model/errors.ts'
import type { Run } from '../model/run.ts'
import type { Target } from '../model/target.ts'
import { blockedField } from '../model/verdict.ts'
import { withAbandonAfter } from './clean.ts'
import { inspectSourceLock } from './source-lock.ts'
import {
  hasProgress,
  isLost,
  assessRun,
  assessRuns,
  storedPolicy,
  type AssessedRun,
  type Owner,
  type PolicyOf,
} from './assess.ts'
import type { OperatorContext } from './recover.ts'
import type { Store } from '../store/store.ts'

/** The advice before a start, and the run it is about. */
export type StartAdvice = {
  readonly action: StartAction
  readonly because: string
  /** Why nobody can end the dead row that is in the way: its table has no word for it. Left out when one can. */
  readonly cannot?: string
  readonly run: Run | null
  /** Where a run with one target would go on. */
  readonly target: Target | null
  /** Who has it, or had it last. */
  readonly owner: Owner | null
}

/** What somebody who wants to start this source would find. It advises; `begin` decides. */
export async function adviseStart(
  { store, policyOf = storedPolicy }: Pick<OperatorContext, 'store' | 'policyOf'>,
  source: string,
  ageMs?: number,
): Promise<StartAdvice> {
  const policies = withAbandonAfter(policyOf, ageMs)
  const run = await findLiveRun(store, source, policies)
  const lock = await store.sourceLock(source)
  const lockState = lock && (await inspectSourceLock(store, lock))
  const lockAdvice = lockState?.advice ?? null
  if (!run) {
    await refuseIfUnreadable(store, source)
    return {
      ...decideStart(null, null, lockAdvice),
      run,
      target: null,
      owner: lockState?.holder ?? null,
    }
  }
  const assessed = await assessRun(store, run, { policyOf: policies })
  const { decision, owner, target } = assessed
  const live = { hasProgress: hasProgress(run), isHeld: isHeld(assessed) }
  const advice = decideStart(live, decision, lockAdvice)
  const cannot = advice.action === 'clean' ? blockedField(run, decision) : {}
  return { ...advice, ...cannot, run, target, owner }
}

/** The live run of a source. Rows of users' own tables may be several: then one that somebody is at, else the newest. */
async function findLiveRun(store: Store, source: string, policyOf: PolicyOf): Promise<Run | null> {
  const newest = await store.liveRun(source)
  if (!newest?.adopted) return newest
  const [live, observations, now] = await Promise.all([
    store.liveRuns(),
    store.observations(),
    store.now(),
  ])
  const same = live.filter(({ run }) => run.source === source)
  return (
    assessRuns(same, observations, { now, observer: TRUSTED_OBSERVER, policyOf }).find(isHeld)
      ?.run ?? newest
  )
}

/** Nothing is live of it, as far as can be seen. In a table that cannot be read it may be: then nobody is told to go ahead. */
async function refuseIfUnreadable(store: Store, source: string): Promise<void> {
  if (store.unreadable.length === 0) return
  const [last] = (await store.runs({ source, limit: 1 })).items
  if (last && !last.adopted) return
  const tables = store.unreadable.map(({ table, because }) => `${table} (${because})`)
  throw new StoreUnavailableError(
    `Whether ${source} is running cannot be told: its rows may be in a table that cannot be read, ${tables.join(', ')}. ` +
      'Look with `unstuck doctor`.',
  )
}

function isHeld(assessed: AssessedRun): boolean {
  return assessed.owner ? !isLost(assessed.owner.assessment) : mayBeActive(assessed)
}

/** A row of a user's own table may have an owner that it does not tell of: while it is young, or moves, somebody may be at it. */
function mayBeActive({ run, policy, decision, evidence }: AssessedRun): boolean {
  if (!run.adopted || run.status !== 'running' || decision.action === 'leave') return false
  return evidence.idleMs <= (policy.staleAfterMs ?? policy.abandonAfterMs)
}
