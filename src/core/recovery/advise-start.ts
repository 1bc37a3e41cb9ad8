import { STEADY } from '../decide/liveness.ts'
import { decideStart, type StartAction } from '../decide/start.ts'
import { StoreUnavailable } from '../model/errors.ts'
import type { Run } from '../model/run.ts'
import type { Target } from '../model/target.ts'
import { cannotOf } from '../model/verdict.ts'
import { withAge } from './clean.ts'
import { lookAtGuard } from './source-lock.ts'
import {
  hasProgress,
  isLost,
  judgeRun,
  judgeRuns,
  storedPolicy,
  type JudgedRun,
  type Owner,
  type PolicyOf,
} from './assess.ts'
import type { Door } from './recover.ts'
import type { Store } from '../store/store.ts'

/** The advice before a start, and the run it is about. */
export type Advice = {
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
  { store, policyOf = storedPolicy }: Pick<Door, 'store' | 'policyOf'>,
  source: string,
  ageMs?: number,
): Promise<Advice> {
  const policies = withAge(policyOf, ageMs)
  const run = await inTheWay(store, source, policies)
  const guard = await store.guard(source)
  const seen = guard && (await lookAtGuard(store, guard))
  const may = seen?.advice ?? null
  if (!run) {
    await refuseIfUnseen(store, source)
    return { ...decideStart(null, null, may), run, target: null, owner: seen?.holder ?? null }
  }
  const judged = await judgeRun(store, run, { policyOf: policies })
  const { decision, owner, target } = judged
  const live = { hasProgress: hasProgress(run), isHeld: isHeld(judged) }
  const advice = decideStart(live, decision, may)
  const cannot = advice.action === 'clean' ? cannotOf(run, decision) : {}
  return { ...advice, ...cannot, run, target, owner }
}

/** The live run of a source. Rows of users' own tables may be several: then one that somebody is at, else the newest. */
async function inTheWay(store: Store, source: string, policyOf: PolicyOf): Promise<Run | null> {
  const newest = await store.liveRun(source)
  if (!newest?.adopted) return newest
  const [live, roll, now] = await Promise.all([store.liveRuns(), store.workers(), store.now()])
  const same = live.filter(({ run }) => run.source === source)
  return judgeRuns(same, roll, { now, judge: STEADY, policyOf }).find(isHeld)?.run ?? newest
}

/** Nothing is live of it, as far as can be seen. In a table that cannot be read it may be: then nobody is told to go ahead. */
async function refuseIfUnseen(store: Store, source: string): Promise<void> {
  if (store.away.length === 0) return
  const [last] = (await store.runs({ source, limit: 1 })).items
  if (last && !last.adopted) return
  const tables = store.away.map(({ table, because }) => `${table} (${because})`)
  throw new StoreUnavailable(
    `Whether ${source} is running cannot be told: its rows may be in a table that cannot be read, ${tables.join(', ')}. ` +
      'Look with `unstuck doctor`.',
  )
}

function isHeld(judged: JudgedRun): boolean {
  return judged.owner ? !isLost(judged.owner.reading) : mayBeAtWork(judged)
}

/** A row of a user's own table may have an owner that it does not tell of: while it is young, or moves, somebody may be at it. */
function mayBeAtWork({ run, policy, decision, evidence }: JudgedRun): boolean {
  if (!run.adopted || run.status !== 'running' || decision.action === 'leave') return false
  return evidence.idleMs <= (policy.staleAfterMs ?? policy.abandonAfterMs)
}
