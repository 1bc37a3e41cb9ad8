import { decideGuard, type GuardAdvice } from '../decide/source-lock.ts'
import { decide } from '../decide/recovery.ts'
import { isProven, readSign, withProgress, type Judge, type Reading } from '../decide/liveness.ts'
import { newId, type RunId, type TargetId, type WorkerId } from '../model/id.ts'
import { policyOfGroup } from '../model/policy.ts'
import { cannotOf, rowOf, TARGET_AFTER, type Verdict } from '../model/verdict.ts'
import type { Evidence } from '../model/worker.ts'
import { isHere } from '../host/identity.ts'
import type { Held, Judgement, Store, Witnessed } from '../store/store.ts'
import { isLost, runSnapshot, storedPolicy, targetSnapshot, type PolicyOf } from './assess.ts'

export type SweepOptions = {
  readonly judge: Judge
  /** Who is there; left out: it is looked at. */
  readonly roll?: readonly Witnessed[]
  /** Who acts, for the audit trail. */
  readonly actor: string
  readonly policyOf?: PolicyOf
  /** The sweeping worker itself, which needs no judgement. */
  readonly self?: WorkerId
  readonly dryRun?: boolean
  /** Look also at what the living hold: it may stand still for longer than its policy allows. */
  readonly stalled?: boolean
  /** Which targets, by what is known of them and of their worker. */
  readonly only?: (held: Held, evidence: Evidence) => boolean
}

const BATCH = 500
/** A worker that may yet come back keeps its row this long. */
const FORGET_AFTER_MS = 3_600_000

/** Looks at every worker that has not ended and takes back what the dead, the silent and (by policy) the stalled hold. */
export async function sweep(store: Store, options: SweepOptions): Promise<Verdict[]> {
  const verdicts: Verdict[] = []
  let judgements: Judgement[] = []
  let over: WorkerId[] = []
  const takeBack = async (): Promise<void> => {
    const isDeed = !options.dryRun && judgements.length > 0
    const applied = isDeed ? await store.applyJudgements(judgements, options.actor) : []
    verdicts.push(...judgements.map((judgement, n) => toVerdict(judgement, applied[n] ?? false)))
    for (const worker of over) await store.retire(worker)
    judgements = []
    over = []
  }
  for (const witnessed of options.roll ?? (await store.workers())) {
    const reading = readSign(witnessed.evidence, options.judge)
    const lost = isLost(reading)
    if (!lost && !(options.stalled && reading.sign === 'present')) continue
    if (lost && witnessed.worker.id === options.self) continue
    for await (const some of judged(store, witnessed, reading, options)) {
      judgements.push(...some)
      // Of many who hold little, as in a user's own table, it is taken back together.
      if (judgements.length >= BATCH) await takeBack()
    }
    const isWhole = !options.dryRun && !options.only
    if (lost && isWhole && isOver(witnessed.evidence)) over.push(witnessed.worker.id)
  }
  await takeBack()
  // Who lost it to a timeout lives, and will take it up again: that is no interruption.
  const touched = new Map<RunId, boolean>()
  for (const { run, applied, sign } of verdicts) {
    if (applied) touched.set(run, (touched.get(run) ?? false) || isLost({ sign }))
  }
  for (const [run, lost] of touched) await store.settle(run, lost)
  return verdicts
}

/** What is to be done with what it holds. */
async function* judged(
  store: Store,
  { worker, evidence }: Witnessed,
  owner: Reading,
  options: SweepOptions,
): AsyncGenerator<Judgement[]> {
  const now = await store.now()
  let after: TargetId | null = null
  for (;;) {
    const batch: Held[] = await store.heldBy(worker.id, after, BATCH)
    const mayGuard = isLost(owner) && batch.some(({ run }) => run.kind === 'single' && !run.adopted)
    const guarded = mayGuard ? await guardedBy(store, { worker, evidence }, owner) : NO_GUARDS
    yield batch
      .filter((held) => options.only?.(held, evidence) ?? true)
      .filter(({ run }) => guarded.get(run.source)?.action !== 'wait')
      .map((held) => {
        const policyOf = options.policyOf ?? storedPolicy
        return judge(held, owner, {
          evidence,
          policyOf,
          now,
          mayStillRun: guarded.has(held.run.source),
        })
      })
      .filter(({ decision }) => decision.action !== 'leave')
    if (batch.length < BATCH) return
    // Those that were left alone are passed over, so that they cannot hide the others.
    after = batch.at(-1)!.target.id
  }
}

const NO_GUARDS: ReadonlyMap<string, GuardAdvice> = new Map()

/**
 * The sources whose guard a lost worker holds that is not proven dead. Its runs of these are taken from it only when the
 * guard could be, and no sooner: no other copy can start before that, and its command may still run.
 */
async function guardedBy(
  store: Store,
  { worker, evidence }: Witnessed,
  reading: Reading,
): Promise<ReadonlyMap<string, GuardAdvice>> {
  if (isProven(evidence)) return NO_GUARDS
  const holder = { reading, evidence, isHere: isHere(worker.process) }
  const guards = (await store.guards()).filter((guard) => guard.worker === worker.id)
  return new Map(guards.map((guard) => [guard.source, decideGuard(guard, holder)]))
}

type Look = {
  readonly evidence: Evidence
  readonly policyOf: PolicyOf
  readonly now: number
  readonly mayStillRun: boolean
}

function judge(held: Held, owner: Reading, look: Look): Judgement {
  const { evidence, policyOf, now, mayStillRun } = look
  const { run, target } = held
  const policy = policyOfGroup(policyOf(run), target.group)
  const snapshot = { run: runSnapshot(run), target: targetSnapshot(target), owner, mayStillRun }
  const decision = decide(snapshot, policy, now)
  const { sign } = withProgress(owner, now - target.lastActivityAt, policy.maxSilenceMs)
  // What is taken from the living is taken for a timeout, be it of the target or of its run.
  const isTimeout = sign === 'present' && decision.action !== 'leave'
  const provisional = isLost(owner) && !isProven(evidence)
  return {
    held,
    decision,
    sign: isTimeout ? 'stalled' : sign,
    evidence,
    provisional,
    newRun: newId(),
  }
}

function toVerdict({ held, decision, sign, evidence }: Judgement, applied: boolean): Verdict {
  const { run, target } = held
  return {
    ...decision,
    run: run.id,
    source: run.source,
    target: target.id,
    ...rowOf(run),
    ...cannotOf(run, decision),
    sign,
    evidence,
    from: target.status,
    to: TARGET_AFTER[decision.action] ?? target.status,
    applied,
  }
}

/** Nothing that bears this identity can come back, or has not for so long that its row is only noise. */
function isOver(evidence: Evidence): boolean {
  return isProven(evidence) || evidence.beatAgeMs > FORGET_AFTER_MS
}
