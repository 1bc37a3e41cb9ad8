import type { Severity } from '../core/decide/health.ts'
import type { Run } from '../core/model/run.ts'
import { describeOrigin, runName } from '../core/model/traits.ts'
import { unstuckCommand } from '../core/model/shell-command.ts'
import { formatDuration, type Millis } from '../core/model/time.ts'
import {
  isLost,
  type Owner,
  assess,
  assessRun,
  hasProgress,
  runSnapshot,
  type AssessContext,
  type AssessedRun,
  type Assessment,
} from '../core/recovery/assess.ts'
import type { Sentence } from '../lib/text/sentence.ts'
import { similarSource } from './find.ts'
import { formatAgo, formatProcess, sentenceCase } from './format.ts'
import { currentStates, describeState, sourceView } from './sources.ts'
import { SOURCE_STORE, type SourceState } from '../features/sources/store/store.ts'
import type { Presented } from './presented.ts'
import { checkpointView, ownerView, runView } from './view.ts'
import { StoreUnavailableError } from '../core/model/errors.ts'
import type { Target } from '../core/model/target.ts'
import { blockedField, type Decision } from '../core/model/verdict.ts'
import { withAbandonAfter } from '../core/model/policy-of.ts'
import { inspectSourceLock, type SourceLockState } from '../core/recovery/source-lock.ts'
import { nameProcess } from '../lib/process/process-info.ts'
import { findLeftovers, type Leftover } from '../operator/leftover-processes.ts'
import { describeLeftover, leftoverViews } from './leftover-processes.ts'
import type { Store } from '../core/store/store.ts'
import type { SourceLockDecision } from '../core/decide/source-lock.ts'

/** The advice where there is no database yet. */
export const NOTHING_RAN: StartAdvice = {
  action: 'start',
  because: 'nothing has run yet',
  run: null,
  target: null,
  owner: null,
  leftover: null,
  state: null,
}

/** `check`: whether a source may start, and why. */
export function presentCheck(source: string, advice: StartAdvice, now: Millis) {
  const { action, because, blockedBy = null, run, target, owner } = advice
  const meaning = describeAdvice(advice)
  const sentences: Sentence[] = [
    [{ text: action, style: action === 'wait' ? 'warn' : 'good' }, `: ${meaning}`],
    [`${source}: ${because}.`],
  ]
  if (run) sentences.push(runSentence(run, target?.page ?? 0, now))
  if (owner) sentences.push(ownerSentence(owner, now))
  if (advice.state && advice.state.nextStartAt !== null)
    sentences.push([`${sentenceCase(describeState(advice.state, now)!)}.`])
  for (const one of advice.leftover?.processes ?? [])
    sentences.push([`Still runs: ${nameProcess(one)}.`])
  if (run && action !== 'start') {
    const command = unstuckCommand('explain', [runName(run)])
    sentences.push([{ text: `More: \`${command}\``, style: 'dim' }])
  }
  return {
    view: {
      source,
      action,
      because,
      blockedBy,
      run: run && runView(run),
      checkpoint: target && target.seq > 0 ? checkpointView(target) : null,
      owner: owner && ownerView(owner),
      paused: advice.state && sourceView(advice.state).paused,
      nextStartAt: advice.state && sourceView(advice.state).nextStartAt,
      processes: advice.leftover ? leftoverViews([advice.leftover], now) : [],
    },
    severity: (action === 'clean' ? 'stuck' : 'ok') as Severity,
    summary: `${source}: ${action}. ${meaning}`,
    sections: [{ heading: null, sentences }],
  } satisfies Presented<object>
}

const MEANING: Record<StartAction, string> = {
  start: 'It can start.',
  resume: 'It continues after its last saved page.',
  clean: 'A dead run is in the way: it is ended when the new one begins.',
  wait: 'A worker holds it.',
}

/** Whether its worker is alive cannot be seen. */
const UNKNOWN = 'A worker may still hold it.'

/** A row of a user's own table is neither continued nor ended when another begins. */
const ROW_MEANING: Record<Exclude<StartAction, 'clean'>, string> = {
  start: 'It can start.',
  resume: 'There is progress to continue from; your own program takes it up.',
  wait: 'A process may be working on it.',
}

function describeAdvice(advice: StartAdvice): string {
  const { action, blockedBy, run, owner, leftover, state } = advice
  if (state?.paused)
    return `It is paused. \`${unstuckCommand('unpause', [state.source])}\` ends the pause.`
  if (action === 'wait' && state !== null && state.nextStartAt !== null)
    return `Its supervisor waits for its next start. \`${unstuckCommand('run-now', [state.source])}\` starts it now.`
  if (leftover) {
    const command = unstuckCommand('recover', [], { source: leftover.lock.source })
    return `Processes of an earlier copy still run. \`${command}\` ends them, and so does the next start.`
  }
  if (blockedBy !== undefined)
    return `A dead row is in the way, and it cannot be ended here. ${blockedBy}.`
  if (action === 'wait' && run && runSnapshot(run).isComplete) return 'It is about to end.'
  const isUnknown = owner?.assessment.liveness === 'unknown'
  const isKnown = action === 'wait' && owner !== null && !isUnknown
  if (run?.traits.ownerIsKnown !== false || isKnown)
    return action === 'wait' && isUnknown ? UNKNOWN : MEANING[action]
  if (action !== 'clean') return ROW_MEANING[action]
  const { command = '' } = advice
  const verb = command.startsWith('unstuck explain') ? 'explains' : 'ends'
  return `A dead row is in the way: \`${command}\` ${verb} it.`
}

function runSentence(run: Run, page: number, now: Millis): Sentence {
  const { startedAt, createdAt, status, traits } = run
  const row = traits.origin ? `, ${describeOrigin(traits.origin)},` : ''
  const created = traits.isUndated ? '' : `, created ${formatAgo(createdAt, now)}`
  const since = startedAt === null ? '' : `, started ${formatAgo(startedAt, now)}`
  const saved = page > 0 ? `, page ${page} is saved` : ''
  return [`Run ${runName(run)}${row} is ${status}${created}${since}${saved}.`]
}

function ownerSentence({ assessment, evidence, worker }: Owner, now: Millis): Sentence {
  const held = `${isLost(assessment) ? 'Last held' : 'Held'} by ${formatProcess(evidence)}`
  if (evidence.neverBeat) return [`${held}.`]
  const sign = evidence.isActivity ? 'activity' : 'heartbeat'
  return [`${held}, last ${sign} ${formatAgo(worker.lastHeartbeatAt, now)}.`]
}

/** Whether to start, and the run this depends on. */
export type StartAdvice = {
  readonly action: StartAction
  readonly because: string
  /** Why the dead row that is in the way cannot be ended: its table has no status for it. */
  readonly blockedBy?: string
  /** The command that continues, ends or explains the live run. */
  readonly command?: string
  readonly run: Run | null
  /** Where a run with one target would continue. */
  readonly target: Target | null
  /** The owner, or the last one. */
  readonly owner: Owner | null
  /** What an earlier copy of its command left on this machine. */
  readonly leftover: Leftover | null
  /** Null: it is not paused, and no supervisor waits. */
  readonly state: SourceState | null
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
  const locks = await store.sourceLocks(source)
  const seen = { locks, observations: await store.observations() }
  const [lock] = locks
  const lockState = lock ? await inspectSourceLock(store, lock, seen.observations) : null
  const advice = await adviseByRun(context, source, { run, lockState, seen, ageMs })
  const states = await (await store.extend(SOURCE_STORE)).sourceStates([source])
  const [state = null] = currentStates(states, lockState ? [lockState] : [])
  if (!state?.paused) return { ...advice, state }
  const because = describeState({ ...state, nextStartAt: null }, await store.now())!
  return { ...advice, action: 'wait', because, state }
}

/** The advice by its runs and its command. */
async function adviseByRun(
  context: AssessContext,
  source: string,
  {
    run,
    lockState,
    seen,
    ageMs,
  }: {
    readonly run: Run | null
    readonly lockState: SourceLockState | null
    readonly seen: Pick<Assessment, 'locks' | 'observations'>
    readonly ageMs: number | undefined
  },
): Promise<Omit<StartAdvice, 'state'>> {
  const { store } = context
  const [leftover = null] = lockState ? await findLeftovers(store, [lockState]) : []
  const lockAdvice = leftover
    ? ({ action: 'wait', because: describeLeftover(leftover.processes) } as const)
    : (lockState?.advice ?? null)
  if (!run) {
    const [last] = (await store.runs({ source, limit: 1 })).items
    refuseIfUnreadable(store, source, last)
    const advice = decideStart(null, null, lockAdvice)
    const similar = last ? null : await similarSource(store, source)
    const hint = similar === null ? '' : `; it has never run, and there is ${similar}`
    return {
      ...advice,
      because: `${advice.because}${hint}`,
      run,
      target: null,
      owner: lockState?.holder ?? null,
      leftover,
    }
  }
  const assessed = await assessRun(context, run, { seen })
  const { decision, owner, target } = assessed
  const { isComplete } = runSnapshot(run)
  const live = { hasProgress: hasProgress(run), isHeld: isHeld(assessed), isComplete }
  const advice = decideStart(live, decision, lockAdvice)
  const blockedBy = advice.action === 'clean' ? blockedField(run, decision) : {}
  const { health } = assessed
  // Only by this age it is dead.
  const age =
    ageMs !== undefined && health.state === 'dead' ? ` --age=${formatDuration(ageMs)}` : ''
  const command = `${health.command}${age}`
  return { ...advice, ...blockedBy, command, run, target, owner, leftover }
}

/** Returns the live run of a source. Of several: one with an owner, else the newest. */
async function findLiveRun(context: AssessContext, source: string): Promise<Run | null> {
  const newest = await context.store.liveRun(source)
  if (!newest || newest.traits.isOnlyLive) return newest
  const { runs } = await assess(context)
  return runs.filter(({ run }) => run.source === source).find(isHeld)?.run ?? newest
}

/** Advises on a source without a live run. While a table is unreadable there may be one: then don't advise to start. */
function refuseIfUnreadable(store: Store, source: string, last: Run | undefined): void {
  if (store.unreadable.length === 0) return
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
  return (evidence.idleMs ?? 0) <= (policy.staleAfterMs ?? policy.abandonAfterMs)
}

/** The advice before a start: `start` (nothing live) · `resume` · `clean` (a dead one first) · `wait` (a worker has it). */
export type StartAction = 'start' | 'resume' | 'clean' | 'wait'
type StartDecision = Pick<StartAdvice, 'action' | 'because'>

/** Decides whether a run can start beside the source's live run. `decision`: what recovery would do with that. */
export function decideStart(
  live: {
    readonly hasProgress: boolean
    /** Its owner is alive, or not proven dead. */
    readonly isHeld: boolean
    /** All its targets have ended: the next start ends it. */
    readonly isComplete: boolean
  } | null,
  decision: Decision | null,
  sourceLock: SourceLockDecision | null = null,
): StartDecision {
  if (sourceLock && (sourceLock.action === 'refuse' || sourceLock.action === 'wait'))
    return { action: 'wait', because: `a command of it is wrapped: ${sourceLock.because}` }
  if (!live || !decision) return { action: 'start', because: 'no run of it is live' }
  const { action, because } = decision
  if (live.isHeld) return { action: 'wait', because }
  if (live.isComplete) return { action: 'start', because }
  switch (action) {
    case 'abandon':
    case 'fail':
    case 'hold':
    case 'park':
      return { action: 'clean', because }
    case 'retry':
    case 'replan':
      return { action: 'start', because }
    case 'wait':
      return { action: live.hasProgress ? 'resume' : 'start', because }
    case 'resume':
    case 'resumable':
    case 'leave':
    case 'alert':
      return { action: 'resume', because }
  }
}
