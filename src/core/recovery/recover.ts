import { STEADY, watchMs, type Judge } from '../decide/liveness.ts'
import type { Id, WorkerId } from '../model/id.ts'
import type { Run } from '../model/run.ts'
import { cannotOf, RUN_AFTER, rowOf, type Verdict } from '../model/verdict.ts'
import type { Evidence } from '../model/worker.ts'
import type { AwayTable, Held, RunMove, Store, Witnessed } from '../store/store.ts'
import { REAL_CLOCK, type Clock } from '../host/clock.ts'
import { isLost, judgeRuns, storedPolicy, type JudgedRun, type PolicyOf } from './assess.ts'
import { sweep } from './sweep.ts'

/** Through which anybody looks at runs and acts on them: a person, a server at its start, a monitor. */
export type Door = {
  readonly store: Store
  /** Who acts, for the audit trail. */
  readonly actor: string
  readonly policyOf?: PolicyOf
}

export type RecoverOptions = {
  readonly dryRun?: boolean
  /** Only what has shown no sign of life for longer. */
  readonly olderThanMs?: number
  readonly sources?: readonly string[]
  /** Only targets of these groups; runs as a whole are then left alone. */
  readonly groups?: readonly string[]
  /** Only these targets, and of runs as a whole only these: what an earlier look named. What came up since waits. */
  readonly only?: ReadonlySet<Id>
  /** Which runs are judged as a whole; false: none, only claims are. */
  readonly runs?: boolean | ((judged: JudgedRun) => boolean)
  /** Only these runs, and targets in them. */
  readonly of?: (run: Run) => boolean
  /** What the judge knows of itself; left out for a process that has only just come: it listens first. */
  readonly judge?: Judge
  readonly self?: WorkerId
  readonly clock?: Clock
}

export type Recovery = {
  /** Every live run, as it was before anything was done. */
  readonly active: JudgedRun[]
  /** What was decided about those that are not well; `applied` says whether it was done. */
  readonly verdicts: Verdict[]
  /** Tables of users' own that could not be read: what is in them was neither judged nor recovered. */
  readonly away: readonly AwayTable[]
}

/** Judges every live run and every claim, and does what the verdicts say, but for those that are left to a person. */
export async function recover(door: Door, options: RecoverOptions = {}): Promise<Recovery> {
  const { store, policyOf = storedPolicy } = door
  const judge = options.judge ?? (await listen(store, options.clock))
  const { active, roll } = await lookAt(store, { judge, policyOf })
  const targets = await sweep(store, {
    roll,
    judge,
    policyOf,
    actor: door.actor,
    dryRun: options.dryRun ?? false,
    stalled: true,
    ...(options.self !== undefined && { self: options.self }),
    ...(isPartial(options) && { only: (held, evidence) => isMeant(options, held, evidence) }),
  })
  const { groups = [], runs: alsoRuns = groups.length === 0 } = options
  const isChosen = typeof alsoRuns === 'function' ? alsoRuns : () => alsoRuns
  const runs = await applyToRuns(door, active.filter(isChosen), options)
  if (!options.dryRun) await store.settle()
  return { active, verdicts: [...targets, ...runs], away: store.away }
}

/** Every live run, judged as a whole, and who is there. */
async function lookAt(
  store: Store,
  { judge, policyOf }: { judge: Judge; policyOf: PolicyOf },
): Promise<{ active: JudgedRun[]; roll: Witnessed[] }> {
  const [live, roll, now] = await Promise.all([store.liveRuns(), store.workers(), store.now()])
  return { active: judgeRuns(live, roll, { now, judge, policyOf }), roll }
}

/**
 * Watches the workers that seem lost until their missing heartbeats can be believed: a process that has just connected
 * cannot tell a dead worker from an outage that just ended. What the kernel proves needs no wait.
 */
export async function listen(store: Store, clock: Clock = REAL_CLOCK): Promise<Judge> {
  const watched = Math.max(0, ...(await store.workers()).map(({ evidence }) => watchMs(evidence)))
  if (watched > 0) await clock.sleep(watched + LISTEN_SLACK_MS)
  return { ...STEADY, connectedForMs: watched }
}

const LISTEN_SLACK_MS = 200

function isPartial({ olderThanMs, sources = [], groups = [], only, of }: RecoverOptions): boolean {
  const isNarrowed = [olderThanMs, only, of].some((one) => one !== undefined)
  return isNarrowed || sources.length > 0 || groups.length > 0
}

function isMeant(options: RecoverOptions, { run, target }: Held, evidence: Evidence): boolean {
  const { olderThanMs = -Infinity, sources = [], groups = [], only, of } = options
  return (
    (only?.has(target.id) ?? true) &&
    (of?.(run) ?? true) &&
    evidence.beatAgeMs > olderThanMs &&
    (sources.length === 0 || sources.includes(run.source)) &&
    (groups.length === 0 || groups.includes(target.group ?? ''))
  )
}

/** Verdicts about runs as a whole. Where somebody holds the targets, these were judged one by one already. */
async function applyToRuns(
  door: Door,
  judged: readonly JudgedRun[],
  { dryRun = false, olderThanMs = -Infinity, sources = [], only, of }: RecoverOptions,
): Promise<Verdict[]> {
  const verdicts: Verdict[] = []
  for (const one of judged) {
    const { run, evidence } = one
    if (!isForRun(one) || evidence.idleMs <= olderThanMs) continue
    if (sources.length > 0 && !sources.includes(run.source)) continue
    if (!(only?.has(run.id) ?? true) || !(of?.(run) ?? true)) continue
    const applied = !dryRun && isAutomatic(one) && (await applyToRun(door, one))
    verdicts.push(runVerdict(one, applied))
  }
  return verdicts
}

/** Something is to be said about the run itself, beyond what is said about its targets. */
function isForRun({ run, decision, owner }: JudgedRun): boolean {
  if (decision.action === 'abandon' || decision.action === 'alert')
    return run.kind === 'crawl' || owner === null
  // A run with one target is moved through its target; a crawl that overran, as a whole.
  return RUN_AFTER[decision.action] !== undefined && (owner === null || isOverrun(run, owner))
}

function isOverrun(run: JudgedRun['run'], owner: NonNullable<JudgedRun['owner']>): boolean {
  return run.kind === 'crawl' && !isLost(owner.reading)
}

/** Dead by age alone is a person's word, unless the policy gave it beforehand. */
function isAutomatic({ decision, policy }: JudgedRun): boolean {
  if (decision.action === 'abandon') return policy.autoClean
  return RUN_AFTER[decision.action] !== undefined
}

/** Moves a run as it was judged, if it still is so. */
export async function applyToRun(door: Door, judged: JudgedRun): Promise<boolean> {
  const move = moveOf(door, judged)
  return move !== undefined && door.store.moveRun(move)
}

/** What the verdict on a run as a whole asks of the store; undefined when it asks nothing. */
export function moveOf({ actor }: Door, judged: JudgedRun): RunMove | undefined {
  const { run, decision, owner, evidence } = judged
  const to = RUN_AFTER[decision.action]
  if (to !== 'interrupted' && to !== 'failed' && to !== 'abandoned') return undefined
  const { status, lastActivityAt, adopted, seal } = run
  // Of a run that is worked on, the attempt that was judged; else all that was seen of it.
  const only = owner ? { status, resumes: run.resumes } : { status, lastActivityAt, unheld: true }
  const asSeen = adopted && seal !== undefined ? { ...only, row: { ...adopted, seal } } : only
  return { run: run.id, to, ...decision, evidence, actor, only: asSeen }
}

export function runVerdict(judged: JudgedRun, applied: boolean): Verdict {
  const { run, decision, owner, evidence } = judged
  return {
    ...decision,
    run: run.id,
    source: run.source,
    target: null,
    ...rowOf(run),
    ...cannotOf(run, decision),
    sign: owner?.reading.sign ?? 'unknown',
    evidence,
    from: run.status,
    to: RUN_AFTER[decision.action] ?? run.status,
    applied,
  }
}
