import { AlreadyRunningError, RefusedError, UsageError } from '../model/errors.ts'
import { shortId } from '../model/id.ts'
import { isLive, type Run } from '../model/run.ts'
import type { Target } from '../model/target.ts'
import { describeOrigin, type RunAction, type TargetAction } from '../model/traits.ts'

/** Why an action is not accepted; null when it is. An operator action throws it. */
export type Refusal = RefusedError | AlreadyRunningError | UsageError | null

export function throwIf(refusal: Refusal): void {
  if (refusal !== null) throw refusal
}

export function refuseCancel(run: Run): Refusal {
  const { id, status } = run
  if (!isLive(status))
    return new RefusedError(`Run ${shortId(id)} has already ended: it is ${status}.`)
  const { origin, actions, cancelSetting } = run.traits
  if (actions.includes('cancel') || origin === null) return null
  return new RefusedError(
    cancelSetting === null
      ? `Run ${shortId(id)} is the whole table ${origin.table}: it is not ended as one. Set single targets aside with \`unstuck park\`.`
      : `No status is mapped for cancel on a run of ${origin.table}: map ${cancelSetting} in the config.`,
  )
}

/** Returns the command that ends the run whatever it is, or what is missing for it. */
export function cancelHint({ id, traits }: Pick<Run, 'id' | 'traits'>): string {
  if (traits.actions.includes('cancel'))
    return `\`unstuck cancel ${shortId(id)}\` ends it whatever it is`
  if (traits.cancelSetting === null) return 'a whole table is not ended as one'
  return `to end it whatever it is, map ${traits.cancelSetting} in the config`
}

/** For a run of which `replan` found nothing to continue. */
export function refuseResume(run: Run): Refusal {
  const { id, status, plannedAt, counts } = run
  const { planned, in_progress: claimed, failed, stuck, parked } = counts.targets
  const isLeft = planned + claimed + failed + stuck > 0 || plannedAt === null
  if (isLive(status) || (run.traits.hasTargets ? isLeft : status !== 'succeeded')) return null
  const why =
    parked > 0
      ? `all that is left of it is parked. Put it back with \`unstuck unpark --run ${shortId(id)}\``
      : 'nothing of it is left to do'
  return new RefusedError(`Run ${shortId(id)} is ${status}, and ${why}.`)
}

export function refuseRetry(run: Run, otherLive: Run | null): Refusal {
  const refusal =
    refuseUnsupported(run, 'retry', 'retried: no row is ever added there') ??
    refuseOtherLive(run, otherLive)
  if (refusal !== null) return refusal
  return isLive(run.status) && run.counts.targets.in_progress > 0
    ? new AlreadyRunningError(run.source, run.id, 'and a worker has it')
    : null
}

export function refuseRevert(
  { id }: Run,
  { because, isOtherLive }: { readonly because: string; readonly isOtherLive: boolean },
): RefusedError {
  return new RefusedError(`Run ${shortId(id)} cannot be reverted: ${because}.`, {
    otherRunIsLive: isOtherLive,
  })
}

export function refuseDelete(run: Run, isDead: boolean): Refusal {
  const refusal = refuseUnsupported(run, 'delete', 'deleted: no row is ever taken from there')
  if (refusal !== null || isDead || !isLive(run.status)) return refusal
  return new UsageError(`Run ${shortId(run.id)} is ${run.status}: only what has ended is deleted.`)
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
  return new AlreadyRunningError(source, otherLive.id, `which is ${otherLive.status}`)
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
function refuseUnsupported(
  { id, traits }: Run,
  action: RunAction | TargetAction,
  what: string,
): Refusal {
  const { actions, origin } = traits
  if (actions.includes(action) || origin === null) return null
  return new RefusedError(
    `Run ${shortId(id)} is ${describeOrigin(origin)}, a table of your own: it cannot be ${what}.`,
  )
}
