import { decide } from '../decide/recovery.ts'
import { readSign, type Judge, type Reading } from '../decide/sign.ts'
import { newId, type TargetId, type WorkerId } from '../model/id.ts'
import { DEFAULT_POLICY } from '../model/policy.ts'
import { TARGET_AFTER, type Verdict } from '../model/verdict.ts'
import type { Evidence } from '../model/worker.ts'
import type { Held, Judgement, Store, Witnessed } from '../store/store.ts'
import { runSnapshot } from './judgement.ts'

export type SweepOptions = {
  readonly judge: Judge
  /** Who acts, for the audit trail. */
  readonly actor: string
  /** The sweeping worker itself, which needs no judgement. */
  readonly self?: WorkerId
  readonly dryRun?: boolean
}

const BATCH = 500
/** A worker that may yet come back keeps its row this long. */
const FORGET_AFTER_MS = 3_600_000

/** Looks at every worker that has not ended and takes back what the dead and the silent held. */
export async function sweep(store: Store, options: SweepOptions): Promise<Verdict[]> {
  const verdicts: Verdict[] = []
  for (const witnessed of await store.workers()) {
    if (witnessed.worker.id === options.self) continue
    const reading = readSign(witnessed.evidence, options.judge)
    if (reading.sign !== 'gone' && reading.sign !== 'silent') continue
    verdicts.push(...(await takeBack(store, witnessed, reading, options)))
    if (!options.dryRun && isOver(witnessed.evidence)) await store.retire(witnessed.worker.id)
  }
  const touched = new Set(
    verdicts.filter((verdict) => verdict.applied).map((verdict) => verdict.run),
  )
  for (const run of touched) await store.settle(run)
  return verdicts
}

async function takeBack(
  store: Store,
  { worker, evidence }: Witnessed,
  owner: Reading,
  options: SweepOptions,
): Promise<Verdict[]> {
  const verdicts: Verdict[] = []
  const now = await store.now()
  let after: TargetId | null = null
  for (;;) {
    const batch: Held[] = await store.heldBy(worker.id, after, BATCH)
    const judgements = batch.map((held) => judge(held, owner, evidence, now))
    const applied = options.dryRun ? [] : await store.applyJudgements(judgements, options.actor)
    verdicts.push(...judgements.map((judgement, n) => toVerdict(judgement, applied[n] ?? false)))
    if (batch.length < BATCH) return verdicts
    // Those that were left alone are passed over, so that they cannot hide the others.
    after = batch.at(-1)!.target.id
  }
}

function judge(held: Held, owner: Reading, evidence: Evidence, now: number): Judgement {
  const { run, target } = held
  const policy = { ...DEFAULT_POLICY, ...run.policy }
  const decision = decide(
    { run: runSnapshot(run), target: { ...target, hasProgress: target.seq > 0 }, owner },
    policy,
    now,
  )
  return { held, decision, sign: owner.sign, evidence, newRun: newId() }
}

function toVerdict({ held, decision, sign, evidence }: Judgement, applied: boolean): Verdict {
  const { run, target } = held
  return {
    ...decision,
    run: run.id,
    source: run.source,
    target: target.id,
    sign,
    evidence,
    from: target.status,
    to: TARGET_AFTER[decision.action] ?? target.status,
    applied,
  }
}

/** Nothing that bears this identity can come back, or has not for so long that its row is only noise. */
function isOver(evidence: Evidence): boolean {
  const proven =
    evidence.process === 'gone' ||
    (evidence.presenceKind === 'file' && evidence.presence === 'free')
  return proven || evidence.beatAgeMs > FORGET_AFTER_MS
}
