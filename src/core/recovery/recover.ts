import { TRUSTED_OBSERVER, requiredObservationMs, type ObserverHealth } from '../decide/liveness.ts'
import type { Id, WorkerId } from '../model/id.ts'
import type { Run } from '../model/run.ts'
import { blockedField, RUN_STATUS_AFTER, rowOf, type Verdict } from '../model/verdict.ts'
import type { Evidence } from '../model/worker.ts'
import type {
  UnreadableTable,
  HeldTarget,
  RunMove,
  Store,
  WorkerObservation,
} from '../store/store.ts'
import { REAL_CLOCK, type Clock } from '../host/clock.ts'
import { isLost, assessRuns, storedPolicy, type AssessedRun, type PolicyOf } from './assess.ts'
import { sweep } from './sweep.ts'

/** Through which anybody looks at runs and acts on them: a person, a server at its start, a monitor. */
export type OperatorContext = {
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
  readonly runs?: boolean | ((judged: AssessedRun) => boolean)
  /** Only these runs, and targets in them. */
  readonly runFilter?: (run: Run) => boolean
  /** What the judge knows of itself; left out for a process that has only just come: it listens first. */
  readonly observer?: ObserverHealth
  readonly self?: WorkerId
  readonly clock?: Clock
}

export type Recovery = {
  /** Every live run, as it was before anything was done. */
  readonly active: AssessedRun[]
  /** What was decided about those that are not well; `applied` says whether it was done. */
  readonly verdicts: Verdict[]
  /** Tables of users' own that could not be read: what is in them was neither judged nor recovered. */
  readonly unreadable: readonly UnreadableTable[]
}

/** Judges every live run and every claim, and does what the verdicts say, but for those that are left to a person. */
export async function recover(
  context: OperatorContext,
  options: RecoverOptions = {},
): Promise<Recovery> {
  const { store, policyOf = storedPolicy } = context
  const observer = options.observer ?? (await waitForHeartbeats(store, options.clock))
  const { active, observations } = await assess(store, { observer, policyOf })
  const targets = await sweep(store, {
    observations,
    observer,
    policyOf,
    actor: context.actor,
    dryRun: options.dryRun ?? false,
    includeStalled: true,
    ...(options.self !== undefined && { self: options.self }),
    ...(hasFilter(options) && {
      filter: (held, evidence) => matchesFilter(options, held, evidence),
    }),
  })
  const { groups = [], runs: wholeRuns = groups.length === 0 } = options
  const isChosen = typeof wholeRuns === 'function' ? wholeRuns : () => wholeRuns
  const runs = await applyRunVerdicts(context, active.filter(isChosen), options)
  if (!options.dryRun) await store.settle()
  return { active, verdicts: [...targets, ...runs], unreadable: store.unreadable }
}

/** Every live run, judged as a whole, and who is there. */
async function assess(
  store: Store,
  { observer, policyOf }: { observer: ObserverHealth; policyOf: PolicyOf },
): Promise<{ active: AssessedRun[]; observations: WorkerObservation[] }> {
  const [live, observations, now] = await Promise.all([
    store.liveRuns(),
    store.observations(),
    store.now(),
  ])
  return { active: assessRuns(live, observations, { now, observer, policyOf }), observations }
}

/**
 * Watches the workers that seem lost until their missing heartbeats can be believed: a process that has just connected
 * cannot tell a dead worker from an outage that just ended. What the kernel proves needs no wait.
 */
export async function waitForHeartbeats(
  store: Store,
  clock: Clock = REAL_CLOCK,
): Promise<ObserverHealth> {
  const watchedMs = Math.max(
    0,
    ...(await store.observations()).map(({ evidence }) => requiredObservationMs(evidence)),
  )
  if (watchedMs > 0) await clock.sleep(watchedMs + WAIT_SLACK_MS)
  return { ...TRUSTED_OBSERVER, connectedForMs: watchedMs }
}

const WAIT_SLACK_MS = 200

function hasFilter({
  olderThanMs,
  sources = [],
  groups = [],
  only,
  runFilter,
}: RecoverOptions): boolean {
  const isNarrowed = [olderThanMs, only, runFilter].some((one) => one !== undefined)
  return isNarrowed || sources.length > 0 || groups.length > 0
}

function matchesFilter(
  options: RecoverOptions,
  { run, target }: HeldTarget,
  evidence: Evidence,
): boolean {
  const { olderThanMs = -Infinity, sources = [], groups = [], only, runFilter } = options
  return (
    (only?.has(target.id) ?? true) &&
    (runFilter?.(run) ?? true) &&
    evidence.beatAgeMs > olderThanMs &&
    (sources.length === 0 || sources.includes(run.source)) &&
    (groups.length === 0 || groups.includes(target.group ?? ''))
  )
}

/** Verdicts about runs as a whole. Where somebody holds the targets, these were judged one by one already. */
async function applyRunVerdicts(
  context: OperatorContext,
  assessed: readonly AssessedRun[],
  { dryRun = false, olderThanMs = -Infinity, sources = [], only, runFilter }: RecoverOptions,
): Promise<Verdict[]> {
  const verdicts: Verdict[] = []
  for (const one of assessed) {
    const { run, evidence } = one
    if (!appliesToRun(one) || evidence.idleMs <= olderThanMs) continue
    if (sources.length > 0 && !sources.includes(run.source)) continue
    if (!(only?.has(run.id) ?? true) || !(runFilter?.(run) ?? true)) continue
    const applied = !dryRun && isAutomatic(one) && (await applyRunVerdict(context, one))
    verdicts.push(toRunVerdict(one, applied))
  }
  return verdicts
}

/** Something is to be said about the run itself, beyond what is said about its targets. */
function appliesToRun({ run, decision, owner }: AssessedRun): boolean {
  if (decision.action === 'abandon' || decision.action === 'alert')
    return run.kind === 'crawl' || owner === null
  // A run with one target is moved through its target; a crawl that overran, as a whole.
  return (
    RUN_STATUS_AFTER[decision.action] !== undefined && (owner === null || isOverrun(run, owner))
  )
}

function isOverrun(run: AssessedRun['run'], owner: NonNullable<AssessedRun['owner']>): boolean {
  return run.kind === 'crawl' && !isLost(owner.assessment)
}

/** Dead by age alone is a person's word, unless the policy gave it beforehand. */
function isAutomatic({ decision, policy }: AssessedRun): boolean {
  if (decision.action === 'abandon') return policy.autoClean
  return RUN_STATUS_AFTER[decision.action] !== undefined
}

/** Moves a run as it was judged, if it still is so. */
export async function applyRunVerdict(
  context: OperatorContext,
  assessed: AssessedRun,
): Promise<boolean> {
  const move = runMoveOf(context, assessed)
  return move !== undefined && context.store.moveRun(move)
}

/** What the verdict on a run as a whole asks of the store; undefined when it asks nothing. */
export function runMoveOf({ actor }: OperatorContext, assessed: AssessedRun): RunMove | undefined {
  const { run, decision, owner, evidence } = assessed
  const to = RUN_STATUS_AFTER[decision.action]
  if (to !== 'interrupted' && to !== 'failed' && to !== 'abandoned') return undefined
  const { status, lastActivityAt, adopted, rowHash } = run
  // Of a run that is worked on, the attempt that was judged; else all that was seen of it.
  const expected = owner
    ? { status, resumes: run.resumes }
    : { status, lastActivityAt, isUnclaimed: true }
  const precondition =
    adopted && rowHash !== undefined ? { ...expected, row: { ...adopted, rowHash } } : expected
  return { run: run.id, to, ...decision, evidence, actor, expected: precondition }
}

export function toRunVerdict(assessed: AssessedRun, applied: boolean): Verdict {
  const { run, decision, owner, evidence } = assessed
  return {
    ...decision,
    run: run.id,
    source: run.source,
    target: null,
    ...rowOf(run),
    ...blockedField(run, decision),
    sign: owner?.assessment.liveness ?? 'unknown',
    evidence,
    from: run.status,
    to: RUN_STATUS_AFTER[decision.action] ?? run.status,
    applied,
  }
}
