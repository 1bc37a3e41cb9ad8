import { commandOn, runName } from '../core/model/traits.ts'
import { shortId, type RunId, type TargetId } from '../core/model/id.ts'
import { isLive, type Run, type RunStatus } from '../core/model/run.ts'
import type { Target, TargetStatus } from '../core/model/target.ts'

/** An entry of the audit trail, as far as it matters for taking it back. */
export type AuditedAction = {
  readonly action: string
  readonly target: TargetId | null
  readonly before: unknown
  readonly after: unknown
}

export type RevertFacts = {
  readonly run: Run
  /** What was done to it, newest first. */
  readonly trail: readonly AuditedAction[]
  /** The targets that the trail names, as they are now. */
  readonly targets: readonly Target[]
  /** Another live run of the same source. */
  readonly otherLive: Run | null
}

export type RevertDecision =
  | {
      readonly action: 'revert'
      /** The action that is reverted. */
      readonly undoes: string
      readonly to: RunStatus
      readonly targets: readonly { id: TargetId; status: TargetStatus; seq: number }[]
      /** The retry that followed it: it has not begun, so it is cancelled. */
      readonly cancel: RunId | null
    }
  | { readonly action: 'refuse'; readonly because: string; readonly isOtherLive: boolean }

const STOPPING_ACTIONS: readonly string[] = ['park', 'hold', 'fail', 'retry']

/** Returns the targets that a revert has to check: those that an action stopped since the last revert. */
export function targetsToCheck(trail: readonly AuditedAction[]): Set<TargetId> {
  const since = trail.findIndex(({ action }) => action === 'revert')
  const done = since === -1 ? trail : trail.slice(0, since)
  return new Set(
    done.flatMap(({ target, action }) =>
      target !== null && STOPPING_ACTIONS.includes(action) ? [target] : [],
    ),
  )
}

/** Decides whether the last action on a run can be reverted, and how. Reads only its arguments. */
export function decideRevert({ run, trail: all, targets, otherLive }: RevertFacts): RevertDecision {
  // Changes nothing that a revert restores, and is undone by itself.
  const trail = all.filter(({ action }) => action !== 'acknowledge')
  const since = trail.findIndex(({ action }) => action === 'revert')
  const done = since === -1 ? trail : trail.slice(0, since)
  const ending = isLive(run.status) ? undefined : findEnding(done, run)
  // Targets that were stopped before the run ended are no part of its ending.
  const stopped = ending ? [] : done.filter((entry, at) => isStillStopped(entry, at, done, targets))
  if (ending && !isUnchanged(ending, run))
    return refuse(`the last thing done to it was ${ending.action}, and ${WRITTEN_SINCE}`)
  if (!ending && stopped.length === 0) return refuse(whyNotRevertible(run, done, since !== -1))

  const retry =
    [ending, ...stopped].map((entry) => retryRunIn(entry)).find((id) => id !== null) ?? null
  const isUntouched = otherLive?.id === retry && otherLive?.startedAt === null
  if (otherLive && !isUntouched) {
    return refuse(
      `run ${runName(otherLive)} of ${run.source} is ${otherLive.status}, and a source has one live run at a time. ` +
        `Let it continue, or end it with \`unstuck cancel ${runName(otherLive)}\` first`,
      true,
    )
  }
  const wasQueued = ending !== undefined && statusIn(ending.before) === 'queued'
  const reopened: RunStatus = wasQueued ? 'queued' : 'interrupted'
  return {
    action: 'revert',
    undoes: (ending ?? stopped[0]!).action,
    // It is not claimed now: the next claim makes it running again.
    to: isLive(run.status) ? run.status : reopened,
    targets: targets
      .filter(({ id }) => stopped.some((entry) => entry.target === id))
      .map(({ id, status, seq }) => ({ id, status, seq })),
    cancel: otherLive ? retry : null,
  }
}

/** The action that led to the run's status. An end before a reopening no longer counts. */
function findEnding(done: readonly AuditedAction[], run: Run): AuditedAction | undefined {
  const opened = done.findIndex(reopensRun)
  return (opened === -1 ? done : done.slice(0, opened)).find((entry) => isEnding(entry, run))
}

/** A retry of a run that had ended before changed nothing about it. */
function isEnding({ target, before, after }: AuditedAction, run: Run): boolean {
  if (target !== null) return false
  return statusIn(after) === run.status && statusIn(before) !== run.status
}

/** It put targets back in the queue, and so opened its run again if that had ended. */
function reopensRun({ action, after }: AuditedAction): boolean {
  return action === 'rewind' || (isRecord(after) && isRecord(after['targets']))
}

/** It parked a target that has not been unparked since. */
function isStillStopped(
  { action, target: id, before, after }: AuditedAction,
  at: number,
  done: readonly AuditedAction[],
  targets: readonly Target[],
): boolean {
  if (id === null || !STOPPING_ACTIONS.includes(action)) return false
  // Of an entry about many targets it is not known which.
  const isBack = done.slice(0, at).some((one) => reopensRun(one) && (one.target ?? id) === id)
  const target = targets.find((one) => one.id === id)
  return (
    !isBack &&
    target !== undefined &&
    target.status === statusIn(after) &&
    target.status !== statusIn(before) &&
    isUnchanged({ after }, { error: target.lastError, finishedAt: target.finishedAt })
  )
}

const WRITTEN_SINCE = 'your own program has written to its row since'
const SECOND_MS = 1_000
const MINUTE_MS = 60_000

/**
 * Returns true if a row of a table of your own still holds what the entry recorded. The column may hold less of it: the
 * beginning of an error, a time to the second, or a day, which counts as its end.
 */
export function isUnchanged(
  { after }: Pick<AuditedAction, 'after'>,
  { error, finishedAt }: Pick<Run, 'error' | 'finishedAt'>,
): boolean {
  const written = isRecord(after) && isRecord(after['written']) ? after['written'] : {}
  const said = written['error']
  if (typeof said === 'string' && !(error && said.startsWith(error.trimEnd()))) return false
  const at = written['finishedAt']
  if (typeof at !== 'string') return true
  if (finishedAt === null) return false
  const isDay = (finishedAt + 1) % MINUTE_MS === 0
  return isDay || Math.abs(finishedAt - Date.parse(at)) < SECOND_MS
}

function whyNotRevertible(run: Run, done: readonly AuditedAction[], isReverted: boolean): string {
  const last = done[0]
  if (!last) {
    const since = isReverted ? ' since it was reverted' : ''
    const again = run.traits.actions.includes('resume') ? OPENS_AGAIN : ''
    return run.status === 'succeeded' || run.status === 'failed'
      ? `it ${run.status} by itself; nothing was done to it${since}${again}`
      : `nothing was done to it${since}`
  }
  const retry = retryRunIn(last)
  if (retry !== null) {
    return `it had ended before; what was done is its retry ${shortId(retry)}, which \`unstuck cancel ${shortId(retry)}\` ends`
  }
  if ((last.action === 'resume' || last.action === 'replan') && !reopensRun(last)) {
    return run.traits.continuedBy === 'own-program'
      ? `it was put back in the queue, and is your own program's again. ${STOOD_THERE}`
      : 'recovery put its work back in the queue, where it continues from its cursor: nothing was taken from it'
  }
  if (reopensRun(last) && isLive(run.status)) {
    const id = runName(run)
    return run.traits.continuedBy === 'own-program'
      ? `the last thing done to it was ${last.action}, which put it back in the queue. ${STOOD_THERE}`
      : `the last thing done to it was ${last.action}, which took nothing away; \`${commandOn('cancel', id)}\` would end it`
  }
  return `the last thing done to it was ${last.action}, and it has moved on since`
}

const OPENS_AGAIN = '. `unstuck resume` opens it again'

/** Owner, heartbeat and error of a row that goes back in the queue are cleared. */
const STOOD_THERE = 'What stood in its row before is in `unstuck history --json`'

function statusIn(value: unknown): string | null {
  return isRecord(value) && typeof value['status'] === 'string' ? value['status'] : null
}

function retryRunIn(entry: AuditedAction | undefined): RunId | null {
  const after = entry?.after
  return isRecord(after) && typeof after['newRun'] === 'string' ? after['newRun'] : null
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function refuse(because: string, isOtherLive = false): RevertDecision {
  return { action: 'refuse', because, isOtherLive }
}
