import { TRUSTED_OBSERVER, requiredObservationMs, type ObserverHealth } from '../decide/liveness.ts'
import type { Id, WorkerId } from '../model/id.ts'
import type { Run } from '../model/run.ts'
import { RUN_STATUS_AFTER, verdictOn, type Verdict } from '../model/verdict.ts'
import type { RunMove } from '../store/store.ts'
import { assess, isLost, type AssessedRun, type Assessment } from './assess.ts'
import type { ActionContext, OperatorContext } from './context.ts'
import { sweep } from './sweep.ts'

export type RecoverOptions = {
  readonly dryRun?: boolean
  /** Only runs and workers without a heartbeat for longer. */
  readonly olderThanMs?: number
  readonly sources?: readonly string[]
  /** Only targets of these groups; runs as a whole are then left alone. */
  readonly groups?: readonly string[]
  /** Only these targets, and of runs as a whole only these: those of an earlier preview. Newer ones wait. */
  readonly only?: ReadonlySet<Id>
  /** Which runs get a verdict as a whole; false: none, only claims do. */
  readonly runs?: boolean | ((assessed: AssessedRun) => boolean)
  /** Only these runs, and targets in them. */
  readonly runFilter?: (run: Run) => boolean
  /** Omitted: this process has just connected and watches the workers that seem lost first. */
  readonly observer?: ObserverHealth
  readonly self?: WorkerId
}

export type Recovery = {
  /** As it was before anything was applied. */
  readonly assessment: Assessment
  /** What was decided about runs and targets that need recovery; `applied`: whether it was done. */
  readonly verdicts: Verdict[]
}

/** Assesses every live run and every claim, and applies the verdicts, except those that need attention. */
export async function recover(
  context: OperatorContext,
  options: RecoverOptions = {},
): Promise<Recovery> {
  const { store, policyOf } = context
  const { groups = [], runs: wholeRuns = groups.length === 0 } = options
  const observer = options.observer ?? (await waitForHeartbeats(context))
  const assessment = await assess({ ...context, observer })
  const targets = await sweep(store, {
    observations: assessment.observations,
    observer,
    policyOf,
    actor: context.actor,
    dryRun: options.dryRun ?? false,
    includeStalled: true,
    ...(options.self !== undefined && { self: options.self }),
    ...(hasFilter(options) && {
      filter: ({ run, target }, { heartbeatAgeMs: silentMs }) =>
        isNamed(options, run, { id: target.id, silentMs }) &&
        (groups.length === 0 || groups.includes(target.group ?? '')),
    }),
  })
  const isChosen = typeof wholeRuns === 'function' ? wholeRuns : () => wholeRuns
  const runs = await applyRunVerdicts(context, assessment.runs.filter(isChosen), options)
  if (!options.dryRun) await store.settle()
  return { assessment, verdicts: [...targets, ...runs] }
}

/**
 * Watches the workers that seem lost until their missing heartbeats can be believed: a process that has just connected
 * cannot tell a dead worker from an outage that just ended. What the kernel proves needs no wait.
 */
export async function waitForHeartbeats({
  store,
  clock,
}: Pick<OperatorContext, 'store' | 'clock'>): Promise<ObserverHealth> {
  const watchedMs = Math.max(
    0,
    ...(await store.observations()).map(({ evidence }) => requiredObservationMs(evidence)),
  )
  if (watchedMs > 0) await clock.sleep(watchedMs + WAIT_SLACK_MS)
  return { ...TRUSTED_OBSERVER, connectedForMs: watchedMs }
}

const WAIT_SLACK_MS = 200

function hasFilter({ sources = [], groups = [], ...options }: RecoverOptions): boolean {
  const { olderThanMs, only, runFilter } = options
  const isNarrowed = [olderThanMs, only, runFilter].some((one) => one !== undefined)
  return isNarrowed || sources.length > 0 || groups.length > 0
}

/** Whether this run, or the target `id` in it, is one that the options name. */
function isNamed(
  { olderThanMs = -Infinity, sources = [], only, runFilter }: RecoverOptions,
  run: Run,
  { id, silentMs }: { readonly id: Id; readonly silentMs: number },
): boolean {
  return (
    (only?.has(id) ?? true) &&
    (runFilter?.(run) ?? true) &&
    silentMs > olderThanMs &&
    (sources.length === 0 || sources.includes(run.source))
  )
}

/** Verdicts about runs as a whole. Claimed targets already have their own verdicts. */
async function applyRunVerdicts(
  context: OperatorContext,
  assessed: readonly AssessedRun[],
  options: RecoverOptions,
): Promise<Verdict[]> {
  const verdicts: Verdict[] = []
  for (const one of assessed) {
    const { run, evidence } = one
    // An operator acknowledged a stuck row: it is left alone until it changes.
    if (run.acknowledgedAt !== null) continue
    if (
      !appliesToRun(one) ||
      !isNamed(options, run, { id: run.id, silentMs: evidence.idleMs ?? 0 })
    )
      continue
    const applied = !options.dryRun && isAutomatic(one) && (await applyRunVerdict(context, one))
    verdicts.push({ ...toRunVerdict(one, applied), needsAttention: !isAutomatic(one) })
  }
  return verdicts
}

/** The run itself needs a verdict, beyond those of its targets. */
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

/** A run that is dead by age alone is abandoned by an operator, or by the policy's `autoClean`. */
function isAutomatic({ decision, policy }: AssessedRun): boolean {
  if (decision.action === 'abandon') return policy.autoClean
  return RUN_STATUS_AFTER[decision.action] !== undefined
}

/** Applies the verdict on a run, if the run has not changed since it was assessed. */
export async function applyRunVerdict(
  context: ActionContext,
  assessed: AssessedRun,
): Promise<boolean> {
  const move = runMoveOf(context, assessed)
  return move !== undefined && context.store.moveRun(move)
}

/** The store call that applies a verdict about a run; undefined if it needs none. */
export function runMoveOf(
  { actor }: Pick<ActionContext, 'actor'>,
  assessed: AssessedRun,
): RunMove | undefined {
  const { run, decision, owner, evidence } = assessed
  const to = RUN_STATUS_AFTER[decision.action]
  if (to !== 'interrupted' && to !== 'failed' && to !== 'abandoned') return undefined
  const { status, lastActivityAt, rowHash, traits } = run
  // Of a run with an owner, the attempt that was assessed; else its last activity, and that no worker holds it.
  const expected = owner
    ? { status, resumes: run.resumes }
    : { status, lastActivityAt, isUnclaimed: true }
  const precondition =
    traits.origin && rowHash !== undefined
      ? { ...expected, row: { ...traits.origin, rowHash } }
      : expected
  return { run: run.id, to, ...decision, evidence, actor, expected: precondition }
}

/** A verdict that an operator asked for, or that recovery applies by itself. */
export function toRunVerdict(assessed: AssessedRun, applied: boolean): Verdict {
  const { run, decision, owner, evidence } = assessed
  return {
    ...verdictOn(run, null, decision),
    liveness: owner?.assessment.liveness ?? 'unknown',
    evidence,
    from: run.status,
    to: RUN_STATUS_AFTER[decision.action] ?? run.status,
    needsAttention: false,
    applied,
  }
}
