import { sayEnding } from '../decide/cancelling.ts'
import { isProven, readSign, STEADY, type Judge } from '../decide/liveness.ts'
import { NotFound, Refused } from '../model/errors.ts'
import { newId, shortId, type RunId } from '../model/id.ts'
import { isLive } from '../model/run.ts'
import type { Verdict } from '../model/verdict.ts'
import {
  HELD_MAX,
  hasProgress,
  isLost,
  judgeRun,
  judgeRuns,
  storedPolicy,
  type JudgedRun,
  type PolicyOf,
} from './assess.ts'
import { applyToRun, listen, runVerdict, type Door } from './recover.ts'

export type Summed = {
  readonly total: number
  /** At work now, or waiting for a worker. */
  readonly active: JudgedRun[]
  /** Nobody is at work, and there is something to go on from. */
  readonly resumable: JudgedRun[]
  /** Nobody is at work, nothing was done, and the policy's time is over. */
  readonly dead: JudgedRun[]
}

/** Every live run, by what can be said about it now. `ageMs`: instead of the policy's `abandonAfter`. */
export async function sumUp(
  { store, policyOf = storedPolicy }: Pick<Door, 'store' | 'policyOf'>,
  ageMs?: number,
): Promise<Summed> {
  const [live, roll, now] = await Promise.all([store.liveRuns(), store.workers(), store.now()])
  const look = { now, judge: STEADY, policyOf: withAge(policyOf, ageMs), forgetLost: true }
  const judged = judgeRuns(live, roll, look)
  const isDead = ({ decision }: JudgedRun): boolean => decision.action === 'abandon'
  // Without progress there is nothing to go on from: it waits for a worker, as one that is queued does.
  const isActive = ({ run, decision, owner }: JudgedRun): boolean =>
    (owner !== null && !isLost(owner.reading)) || decision.action === 'leave' || !hasProgress(run)
  return {
    total: judged.length,
    dead: judged.filter(isDead),
    active: judged.filter((one) => !isDead(one) && isActive(one)),
    resumable: judged.filter((one) => !isDead(one) && !isActive(one)),
  }
}

/** Another threshold for what is dead by age, or the policies' own. */
export function withAge(policyOf: PolicyOf, ageMs: number | undefined): PolicyOf {
  if (ageMs === undefined) return policyOf
  return (run) => ({ ...policyOf(run), abandonAfterMs: ageMs })
}

/** Marks these dead runs as abandoned. What is no longer dead when its turn comes is left alone. */
export async function cleanAll(door: Door, dead: readonly JudgedRun[]): Promise<Verdict[]> {
  const verdicts: Verdict[] = []
  for (const judged of dead) verdicts.push(runVerdict(judged, await cleanOne(door, judged)))
  return verdicts
}

/** Marks one run as abandoned; refuses, with the reason, what is not dead. */
export async function clean(door: Door, id: RunId, ageMs?: number): Promise<Verdict> {
  const run = await door.store.run(id)
  if (!run) throw new NotFound(`run ${id}`, '`unstuck runs` lists them.')
  const short = shortId(id)
  if (!isLive(run.status))
    throw new Refused(`Run ${short} is ${run.status}: there is nothing to clean.`)
  const policyOf = withAge(door.policyOf ?? storedPolicy, ageMs)
  const judged = await judgeRun(door.store, run, { policyOf, forgetLost: true })
  if (judged.decision.action !== 'abandon') {
    throw new Refused(
      `Run ${short} is not dead: ${judged.decision.because}. ` +
        `Look with \`unstuck explain ${short}\`; ${sayEnding(run)}.`,
    )
  }
  return runVerdict(judged, await cleanOne(door, judged))
}

async function cleanOne(door: Door, judged: JudgedRun): Promise<boolean> {
  const { store } = door
  // A row of a user's own table is one thing: it is written to once.
  if (judged.run.counts.targets.in_progress === 0 || judged.run.adopted)
    return applyToRun(door, { ...judged, owner: null })
  // Its worker is lost and nobody has recovered it: its claims are taken back first, fenced as every recovery is.
  await letGo(door, judged, await listen(store))
  const run = await store.run(judged.run.id)
  if (!run || run.counts.targets.in_progress > 0 || hasProgress(run)) return false
  return applyToRun(door, { ...judged, run, owner: null })
}

async function letGo({ store, actor }: Door, { run }: JudgedRun, judge: Judge): Promise<void> {
  for (const { worker, evidence } of await store.workers()) {
    const reading = readSign(evidence, judge)
    if (!isLost(reading)) continue
    const because = `${reading.because}; no page was done yet`
    const decision = { action: 'replan', because } as const
    const judgements = (await store.heldBy(worker.id, null, HELD_MAX))
      .filter((held) => held.run.id === run.id)
      .map((held) => ({
        held,
        decision,
        sign: reading.sign,
        evidence,
        provisional: !isProven(evidence),
        newRun: newId(),
      }))
    await store.applyJudgements(judgements, actor)
  }
}
