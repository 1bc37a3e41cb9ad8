import { decideStart, type StartAction } from '../decide/start.ts'
import type { Run } from '../model/run.ts'
import type { Target } from '../model/target.ts'
import { withAge } from './cleaning.ts'
import { lookAtGuard } from './guarding.ts'
import {
  hasProgress,
  isLost,
  judgeRun,
  storedPolicy,
  type JudgedRun,
  type Owner,
} from './judgement.ts'
import type { Door } from './recovery.ts'

/** The advice before a start, and the run it is about. */
export type Advice = {
  readonly action: StartAction
  readonly because: string
  readonly run: Run | null
  /** Where a run with one target would go on. */
  readonly target: Target | null
  /** Who has it, or had it last. */
  readonly owner: Owner | null
}

/** What somebody who wants to start this source would find. It advises; `begin` decides. */
export async function adviseStart(
  { store, policyOf = storedPolicy }: Pick<Door, 'store' | 'policyOf'>,
  source: string,
  ageMs?: number,
): Promise<Advice> {
  const run = await store.liveRun(source)
  const guard = await store.guard(source)
  const seen = guard && (await lookAtGuard(store, guard))
  const may = seen?.advice ?? null
  if (!run) {
    return { ...decideStart(null, null, may), run, target: null, owner: seen?.holder ?? null }
  }
  const judged = await judgeRun(store, run, { policyOf: withAge(policyOf, ageMs) })
  const { decision, owner, target } = judged
  const isHeld = owner ? !isLost(owner.reading) : mayBeAtWork(judged)
  const advice = decideStart({ hasProgress: hasProgress(run), isHeld }, decision, may)
  return { ...advice, run, target, owner }
}

/** A row of a user's own table may have an owner that it does not tell of: while it is young, or moves, somebody may be at it. */
function mayBeAtWork({ run, policy, decision, evidence }: JudgedRun): boolean {
  if (!run.adopted || run.status !== 'running' || decision.action === 'leave') return false
  return evidence.idleMs <= (policy.staleAfterMs ?? policy.abandonAfterMs)
}
