import { decide, type Snapshot } from '../core/decide/recovery.ts'
import { outlook, type Outlook } from './next-steps.ts'
import { readSign, STEADY, withProgress } from '../core/decide/liveness.ts'
import type { TargetId } from '../core/model/id.ts'
import { policyOfGroup, type Policy } from '../core/model/policy.ts'
import { isLive, type Run } from '../core/model/run.ts'
import type { Target } from '../core/model/target.ts'
import { whyNot, type Decision } from '../core/model/verdict.ts'
import type { Millis } from '../core/model/time.ts'
import type { AuditEntry, Store, Witnessed } from '../core/store/store.ts'
import {
  asJudged,
  judgeRun,
  runSnapshot,
  storedPolicy,
  targetSnapshot,
  type Owner,
} from '../core/recovery/assess.ts'
import type { Door } from '../core/recovery/recover.ts'

/** Why a run or a target is what it is, and what comes next. */
export type Explanation = {
  readonly run: Run
  /** Null when the run as a whole is explained. */
  readonly target: Target | null
  readonly decision: Decision
  readonly owner: Owner | null
  readonly policy: Policy
  readonly outlook: Outlook
  /** What was done to it so far, newest first. */
  readonly trail: readonly AuditEntry[]
  readonly now: Millis
}

const TRAIL_MAX = 5

export async function explainRun(door: Door, run: Run): Promise<Explanation> {
  const { store, policyOf = storedPolicy } = door
  const judged = await judgeRun(store, run, { policyOf })
  const { decision, policy } = judged
  // Whoever works on its source now has nothing to do with a run that has ended.
  const owner = isLive(run.status) ? judged.owner : null
  const held = judged.target?.status === 'in_progress' ? targetSnapshot(judged.target) : null
  const now = await store.now()
  const snapshot = { run: runSnapshot(run), target: held, owner: owner?.reading ?? null }
  const trail = await store.audit({ run: run.id, newestFirst: true, limit: TRAIL_MAX })
  return {
    run,
    target: null,
    decision,
    owner,
    policy,
    outlook: outlookOn(run, snapshot, decision, policy, now),
    trail,
    now,
  }
}

export async function explainTarget(door: Door, id: TargetId): Promise<Explanation | null> {
  const { store, policyOf = storedPolicy } = door
  const target = await store.target(id)
  const run = target && (await store.run(target.run))
  if (!target || !run) return null
  const held = await ownerOf(store, target)
  const policy = policyOfGroup(policyOf(run), target.group)
  const now = await store.now()
  const still = now - target.lastActivityAt
  const owner = held && {
    ...held,
    reading: withProgress(held.reading, still, policy.maxSilenceMs),
  }
  const snapshot: Snapshot = {
    run: runSnapshot(run),
    target: targetSnapshot(await asJudged(store, target)),
    owner: held?.reading ?? null,
  }
  const decision = decide(snapshot, policy, now)
  const trail = await store.audit({ run: run.id, target: id, newestFirst: true, limit: TRAIL_MAX })
  const seen = outlookOn(run, snapshot, decision, policy, now)
  return { run, target, decision, owner, policy, outlook: seen, trail, now }
}

/** What cannot be carried out for want of a word stays as it is until somebody maps one. */
function outlookOn(run: Run, ...judged: Parameters<typeof outlook>): Outlook {
  const seen = outlook(...judged)
  const cannot = whyNot(run, judged[1])
  return cannot === null ? seen : { ...seen, changes: [`${cannot}.`] }
}

/** Who has it now; a target also remembers who had it last. */
async function ownerOf(store: Store, { worker: id, status }: Target): Promise<Owner | null> {
  if (id === null || status !== 'in_progress') return null
  const found = (await store.workers()).find(({ worker }: Witnessed) => worker.id === id)
  return found ? { ...found, reading: readSign(found.evidence, STEADY) } : null
}
