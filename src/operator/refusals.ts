import { AlreadyRunningError, RefusedError, UsageError } from '../core/model/errors.ts'
import { shortId } from '../core/model/id.ts'
import { isLive, type Run } from '../core/model/run.ts'
import { DEAD_LETTER_STATUSES, type Target } from '../core/model/target.ts'
import {
  commandOn,
  describeOrigin,
  type RunAction,
  type TargetAction,
  runName,
} from '../core/model/traits.ts'

/** Why an action is not accepted; null when it is. An operator action throws it. */
export type Refusal = RefusedError | AlreadyRunningError | UsageError | null

export function throwIf(refusal: Refusal): void {
  if (refusal !== null) throw refusal
}

/** For a live row of a table of your own. `resume` is only for one that is stuck: `isStuck`. */
export function refuseMove(run: Run, action: 'resume' | 'fail', isStuck = false): Refusal {
  const { status, traits } = run
  if (!isLive(status)) return refuseCancel(run)
  const missing =
    traits.blocked[action] ?? `Only a row of your own runs table is moved: ${cancelHint(run)}`
  if (!traits.actions.includes(action) || run.kind === 'crawl')
    return new RefusedError(`${missing}.`)
  if (action === 'fail' || isStuck) return null
  return new RefusedError(`Run ${runName(run)} is ${status} and not stuck: a program may be at it.`)
}

export function refuseCancel(run: Run): Refusal {
  const { status } = run
  if (!isLive(status))
    return new RefusedError(`Run ${runName(run)} has already ended: it is ${status}.`)
  const { origin, actions, hasTargets } = run.traits
  if (actions.includes('cancel') || origin === null) return null
  return new RefusedError(
    hasTargets
      ? `Run ${runName(run)} is the whole table ${origin.table}: it is not ended as one. ${refusePark(run)?.message ?? 'Set single targets aside with `unstuck park`.'}`
      : `No status is mapped for cancel on a run of ${origin.table}: map ${cancelSetting(run)} in the config.`,
  )
}

/** For targets of the run. A parked row must differ from a failed one. */
export function refusePark(run: Run): Refusal {
  const { origin, actions } = run.traits
  if (origin === null || actions.includes('park')) return null
  if (run.kind === 'single')
    return new RefusedError(
      `Run ${runName(run)} is ${describeOrigin(origin)}, which is not parked: ${cancelHint(run)}.`,
    )
  const [parked, stuck] = ['parked', 'stuck'].map(
    (one) => `adopted.${origin.table}.statuses.${one}`,
  )
  return new RefusedError(
    `No status is mapped for park on a target of ${origin.table}: map ${parked} or ${stuck} in the config.`,
  )
}

/** Returns the command that ends the run whatever it is, or what is missing for it. */
export function cancelHint(run: Pick<Run, 'id' | 'traits'>): string {
  const { traits } = run
  if (traits.actions.includes('cancel'))
    return `\`${commandOn('cancel', runName(run))}\` ends it whatever it is`
  if (traits.actions.includes('fail'))
    return `\`${commandOn('fail', runName(run))}\` ends it whatever it is`
  if (traits.hasTargets) return 'a whole table is not ended as one'
  return `to end it whatever it is, map ${cancelSetting(run)} in the config`
}

export function cancelSetting({ traits }: Pick<Run, 'traits'>): string {
  return `adopted.${traits.origin?.table}.statuses.cancelled`
}

/** For a run of which `replan` found nothing to continue. */
export function refuseResume(run: Run): Refusal {
  const { status, plannedAt, counts } = run
  const { planned, in_progress: claimed, failed, stuck, parked } = counts.targets
  const isLeft = planned + claimed + failed + stuck > 0 || plannedAt === null
  if (isLive(status) || (run.traits.hasTargets ? isLeft : status !== 'succeeded')) return null
  const why =
    parked > 0
      ? `all that is left of it is parked. Put it back with \`unstuck unpark --run ${runName(run)}\``
      : 'nothing of it is left to do'
  return new RefusedError(`Run ${runName(run)} is ${status}, and ${why}.`)
}

export function refuseRetry(run: Run, otherLive: Run | null): Refusal {
  const what = `retried: map adopted.${run.traits.origin?.table}.statuses.queued in the config`
  const refusal = refuseUnsupported(run, 'retry', what) ?? refuseOtherLive(run, otherLive)
  if (refusal !== null) return refusal
  return isLive(run.status) && run.counts.targets.in_progress > 0
    ? new AlreadyRunningError(run.source, run.id, { name: runName(run) })
    : null
}

/** For a run: it failed or was abandoned, is a stuck row of your own, or has targets that need an operator. */
export function refuseAcknowledge(run: Run, isStuck = false): Refusal {
  const { status, counts } = run
  const refusal = refuseUnsupported(run, 'acknowledge', 'acknowledged')
  if (refusal !== null || isStuck || ['failed', 'abandoned'].includes(status)) return refusal
  if (DEAD_LETTER_STATUSES.some((one) => counts.targets[one] > 0)) return null
  return new RefusedError(
    `Run ${runName(run)} is ${status}, and none of its targets is failed, stuck or parked: there is nothing to acknowledge.`,
  )
}

export function refuseAcknowledgeTarget({ id, status }: Target, run: Run): Refusal {
  if (DEAD_LETTER_STATUSES.some((one) => one === status))
    return refuseUnsupported(run, 'acknowledge', 'acknowledged')
  return new RefusedError(
    `Target ${shortId(id)} is ${status.replace('_', ' ')}: only what is failed, stuck or parked is acknowledged.`,
  )
}

export function refuseRevert(
  run: Run,
  { because, isOtherLive }: { readonly because: string; readonly isOtherLive: boolean },
): RefusedError {
  return new RefusedError(`Run ${runName(run)} cannot be reverted: ${because}.`, {
    otherRunIsLive: isOtherLive,
  })
}

export function refuseDelete(run: Run, isDead: boolean): Refusal {
  const missing = run.traits.blocked.delete
  if (missing !== undefined) return new RefusedError(`${missing}.`)
  if (isDead || !isLive(run.status)) return null
  return new UsageError(`Run ${runName(run)} is ${run.status}: only what has ended is deleted.`)
}

/** For all that puts targets back in the queue, which opens an ended run again. */
export function refuseReplan(run: Run, otherLive: Run | null): Refusal {
  const { actions, origin } = run.traits
  if (actions.includes('resume') || origin === null) return refuseOtherLive(run, otherLive)
  return new RefusedError(`No status is mapped for resume on a run of ${origin.table}.`)
}

/** Most sources have at most one live run. */
function refuseOtherLive({ source, traits }: Run, otherLive: Run | null): Refusal {
  if (!otherLive || !traits.isOnlyLive) return null
  return new AlreadyRunningError(source, otherLive.id, { status: otherLive.status })
}

export function isParkedOrStuck({ status }: Pick<Target, 'status'>): boolean {
  return status === 'parked' || status === 'stuck'
}

export type RewindOptions = {
  readonly to: number
  /** Address of the page after `to`, if the crawl uses addresses. */
  readonly next?: string | undefined
  readonly cursor?: unknown
}

export function refuseRewind(
  { id, page }: Target,
  run: Run,
  otherLive: Run | null,
  { to, next }: RewindOptions,
): Refusal {
  const refusal = refuseUnsupported(
    run,
    'rewind',
    'rewound: how far it is stands in your own columns',
  )
  if (refusal !== null) return refusal
  if (!Number.isSafeInteger(to) || to < 0)
    return new UsageError('A target is rewound to a page: a whole number from 0.')
  if (to > page)
    return new UsageError(`Target ${shortId(id)} is at page ${page}: it can only go back.`)
  // Also for a target that is done: only its last page had no next one.
  if (run.kind === 'crawl' && to > 0 && next === undefined) {
    return new RefusedError(
      `The address of page ${to + 1} is not stored, and a crawl goes by addresses: give it with --next URL, ` +
        'or go back to the start with --to 0.',
    )
  }
  return refuseOtherLive(run, otherLive)
}

/** Nothing is added to a table of your own or deleted there. */
function refuseUnsupported(run: Run, action: RunAction | TargetAction, what: string): Refusal {
  const { actions, origin } = run.traits
  if (actions.includes(action) || origin === null) return null
  return new RefusedError(
    `Run ${runName(run)} is ${describeOrigin(origin)}, a table of your own: it cannot be ${what}.`,
  )
}
