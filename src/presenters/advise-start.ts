import { decideStart, type StartAction } from '../core/decide/start.ts'
import { StoreUnavailableError } from '../core/model/errors.ts'
import type { Run } from '../core/model/run.ts'
import type { Target } from '../core/model/target.ts'
import { blockedField } from '../core/model/verdict.ts'
import { withAbandonAfter } from '../core/model/policy-of.ts'
import { inspectSourceLock } from '../core/recovery/source-lock.ts'
import {
  assess,
  assessRun,
  hasProgress,
  isLost,
  type AssessContext,
  type AssessedRun,
  type Owner,
} from '../core/recovery/assess.ts'
import type { Store } from '../core/store/store.ts'

/** Whether to start, and the run this depends on. */
export type StartAdvice = {
  readonly action: StartAction
  readonly because: string
  /** Why the dead row that is in the way cannot be ended: its table has no status for it. */
  readonly blockedBy?: string
  readonly run: Run | null
  /** Where a run with one target would continue. */
  readonly target: Target | null
  /** The owner, or the last one. */
  readonly owner: Owner | null
}

/** Returns what starting this source would do now. Only advice: `begin` decides. */
export async function adviseStart(
  given: AssessContext,
  source: string,
  ageMs?: number,
): Promise<StartAdvice> {
  const context = { ...given, policyOf: withAbandonAfter(given.policyOf, ageMs) }
  const { store } = context
  const run = await findLiveRun(context, source)
  const lock = (await store.sourceLocks(source))[0]
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
  const assessed = await assessRun(context, run)
  const { decision, owner, target } = assessed
  const live = { hasProgress: hasProgress(run), isHeld: isHeld(assessed) }
  const advice = decideStart(live, decision, lockAdvice)
  const blockedBy = advice.action === 'clean' ? blockedField(run, decision) : {}
  return { ...advice, ...blockedBy, run, target, owner }
}

/** Returns the live run of a source. Of several: one with an owner, else the newest. */
async function findLiveRun(context: AssessContext, source: string): Promise<Run | null> {
  const newest = await context.store.liveRun(source)
  if (!newest || newest.traits.isOnlyLive) return newest
  const { runs } = await assess(context)
  return runs.filter(({ run }) => run.source === source).find(isHeld)?.run ?? newest
}

/** Advises on a source without a live run. While a table is unreadable there may be one: then don't advise to start. */
async function refuseIfUnreadable(store: Store, source: string): Promise<void> {
  if (store.unreadable.length === 0) return
  const [last] = (await store.runs({ source, limit: 1 })).items
  if (last?.traits.origin === null) return
  const tables = store.unreadable.map(({ table, because }) => `${table} (${because})`)
  throw new StoreUnavailableError(
    `Whether ${source} is running is unknown: its rows may be in a table that cannot be read, ${tables.join(', ')}. ` +
      'Look with `unstuck doctor`.',
  )
}

function isHeld(assessed: AssessedRun): boolean {
  return assessed.owner ? !isLost(assessed.owner.assessment) : mayBeActive(assessed)
}

/** While a run without a known owner is young or makes progress, a process that is not recorded may work on it. */
function mayBeActive({ run, policy, decision, evidence }: AssessedRun): boolean {
  const { ownerIsKnown } = run.traits
  if (ownerIsKnown || run.status !== 'running' || decision.action === 'leave') return false
  return evidence.idleMs <= (policy.staleAfterMs ?? policy.abandonAfterMs)
}
