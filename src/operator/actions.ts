import {
  refuseCancel,
  refuseDelete,
  refuseMove,
  refuseResume,
  refuseRetry,
  refuseRevert,
  refuseRewind,
  throwIf,
  type RewindOptions,
} from './refusals.ts'
import { decideRevert, targetsToCheck, type RevertFacts } from './revert.ts'
import { RefusedError, unknownRun, unknownTarget, UsageError } from '../core/model/errors.ts'
import { newId, shortId, type RunId, type TargetId } from '../core/model/id.ts'
import { INTEGER_MAX } from '../core/model/limits.ts'
import type { Run } from '../core/model/run.ts'
import type { Target } from '../core/model/target.ts'
import type {
  DeleteResult,
  ReplanRequest,
  ReplanResult,
  ParkedTarget,
  Store,
} from '../core/store/store.ts'
import type { ActionContext } from '../core/recovery/context.ts'

/**
 * Actions of an operator on a run or on targets. Each throws the refusal of refusals.ts, or is applied and
 * recorded in the audit trail. A dry run throws where the action would, and changes nothing.
 */
export type { RewindOptions }

export function cancel(context: ActionContext, id: RunId, because?: string): Promise<Run> {
  return endRun(context, id, { action: 'cancel', to: 'cancelled' }, because)
}

/** Ends a live row of a table of your own as failed. */
export function fail(context: ActionContext, id: RunId, because?: string): Promise<Run> {
  return endRun(context, id, { action: 'fail', to: 'failed' }, because)
}

async function endRun(
  { store, actor }: ActionContext,
  id: RunId,
  { action, to }: { action: 'cancel' | 'fail'; to: 'cancelled' | 'failed' },
  because = `${to} by ${actor}`,
): Promise<Run> {
  const refuse = (run: Run) => (action === 'cancel' ? refuseCancel(run) : refuseMove(run, 'fail'))
  throwIf(refuse(await getRun(store, id)))
  const move = { run: id, to, action, because, evidence: null, actor, expected: {} }
  const isMoved = await store.moveRun(move)
  const current = await getRun(store, id)
  if (isMoved) return current
  throwIf(refuse(current))
  throw new RefusedError(keepsChanging(id))
}

export type ResumeResult = ReplanResult & { readonly run: Run }

/** Reopens a run: the next worker continues from its cursors. Failed and stuck targets are retried. */
export async function resume(
  context: ActionContext,
  id: RunId,
  dryRun = false,
  because?: string,
): Promise<ResumeResult> {
  const { store } = context
  const run = await getRun(store, id)
  const selection = { statuses: ['failed', 'stuck'], reopen: true, dryRun } as const
  const resumed = await store.replan({
    ...replanRequest(context, id, 'resume', selection),
    ...(because !== undefined && { because }),
  })
  if (resumed.targets === 0 && !resumed.reopened) throwIf(refuseResume(run))
  return { ...resumed, run: await getRun(store, id) }
}

/** Starts a new run of the same work from the beginning. Returns the new run. */
export async function retry(context: ActionContext, id: RunId, because?: string): Promise<Run> {
  const { store, actor } = context
  const run = await getRun(store, id)
  throwIf(refuseRetry(run, await otherLiveRun(store, run)))
  const newRun = newId()
  await store.retryRun({ run: id, newRun, actor, because: because ?? `retried by ${actor}` })
  return getRun(store, newRun)
}

export type RevertResult = { readonly run: Run; readonly undid: string; readonly targets: number }

const AUDIT_MAX = 10_000
const REVERT_ATTEMPTS_MAX = 3

/** Reverts the last change of a run: a clean, a cancel, a fail, or targets parked by recovery. */
export async function revert(
  context: ActionContext,
  id: RunId,
  dryRun = false,
  why?: string,
): Promise<RevertResult> {
  const { store, actor } = context
  for (let attempt = 1; ; attempt++) {
    // Changes of rows of your own tables by a process that died are in the audit trail only after this.
    if (!dryRun && (await getRun(store, id)).traits.origin) await store.settle(id)
    const run = await getRun(store, id)
    const decision = decideRevert(await loadRevertFacts(store, run))
    if (decision.action === 'refuse') throw refuseRevert(run, decision)
    const { undoes, to, targets, cancel: retried } = decision
    const because = why ?? `${undoes} reverted by ${actor}`
    const plan = { run: id, from: run.status, to, targets, cancel: retried, undoes, actor, because }
    if (dryRun || (await store.revert(plan))) {
      return { run: await getRun(store, id), undid: undoes, targets: targets.length }
    }
    // The run changed meanwhile; the new state may be revertible too.
    if (attempt === REVERT_ATTEMPTS_MAX) throw new RefusedError(keepsChanging(id))
  }
}

/** Reads what decides whether the last action on a run can be reverted. */
export async function loadRevertFacts(
  store: Store,
  run: Run,
  auditMax = AUDIT_MAX,
): Promise<RevertFacts> {
  const trail = await store.audit({ run: run.id, newestFirst: true, limit: auditMax })
  const targets: Target[] = []
  for (const id of targetsToCheck(trail)) {
    const target = await store.target(id)
    if (target) targets.push(target)
  }
  return { run, trail, targets, otherLive: await otherLiveRun(store, run) }
}

export type ResetOptions = {
  /** Only these targets. */
  readonly targets?: readonly TargetId[] | undefined
  readonly groups?: readonly string[] | undefined
  /** Only targets with at most this many attempts. */
  readonly maxAttempts?: number | undefined
  readonly dryRun?: boolean | undefined
}

/** Puts failed targets back in the queue, from their cursors. */
export async function resetFailed(
  context: ActionContext,
  run: RunId,
  options: ResetOptions = {},
): Promise<ReplanResult> {
  const { targets, groups, maxAttempts: attemptsMax, dryRun = false } = options
  const isInRange =
    Number.isInteger(attemptsMax) && attemptsMax! >= 1 && attemptsMax! <= INTEGER_MAX
  if (attemptsMax !== undefined && !isInRange)
    throw new UsageError(`maxAttempts is a whole number from 1 to ${INTEGER_MAX}.`)
  const selection = { statuses: ['failed'], targets, groups, attemptsMax, dryRun } as const
  return context.store.replan(replanRequest(context, run, 'reset-failed', selection))
}

/** Parks targets, also claimed ones. Returns those that were open. */
export async function park(
  { store, actor }: ActionContext,
  targets: readonly TargetId[],
  because?: string,
): Promise<ParkedTarget[]> {
  const parked = await store.parkTargets({
    targets,
    actor,
    because: because ?? `parked by ${actor}`,
  })
  for (const run of new Set(parked.map((one) => one.run))) await store.settle(run)
  return parked
}

/** Puts parked and stuck targets of a run back in the queue, from their cursors: all of them, or these. */
export function unpark(
  context: ActionContext,
  run: RunId,
  {
    targets,
    groups,
    dryRun = false,
  }: Partial<Pick<ReplanRequest, 'targets' | 'groups' | 'dryRun'>> = {},
): Promise<ReplanResult> {
  const selection = { statuses: ['parked', 'stuck'], targets, groups, dryRun } as const
  return context.store.replan(replanRequest(context, run, 'unpark', selection))
}

/** Moves a cursor back. Saved items stay; pages after `to` are fetched again. */
export async function rewind(
  context: ActionContext,
  id: TargetId,
  options: RewindOptions & { readonly dryRun?: boolean },
): Promise<Target> {
  const { store, actor } = context
  const { to, next = null } = options
  const target = await getTarget(store, id)
  const run = await getRun(store, target.run)
  throwIf(refuseRewind(target, run, await otherLiveRun(store, run), options))
  if (options.dryRun) return target
  const { cursor = run.traits.rewindKeepsCursor ? target.cursor : null } = options
  await store.rewind({ target: id, to, next, cursor, actor, because: `rewound by ${actor}` })
  return getTarget(store, id)
}

/** Returns another live run of the source. */
export async function otherLiveRun(store: Store, run: Run): Promise<Run | null> {
  const live = run.traits.isOnlyLive ? await store.liveRun(run.source) : null
  return live?.id === run.id ? null : live
}

export function deleteRun(
  { store, actor }: ActionContext,
  run: Run,
  withItems: boolean,
): Promise<DeleteResult> {
  throwIf(refuseDelete(run, true))
  return store.deleteRun({ run: run.id, withItems, actor, because: `deleted by ${actor}` })
}

function keepsChanging(id: RunId): string {
  return `Run ${shortId(id)} keeps changing: look at it and try again.`
}

const REPLANNED: Readonly<Record<ReplanRequest['action'], string>> = {
  resume: 'resumed',
  'reset-failed': 'reset',
  unpark: 'unparked',
}

function replanRequest(
  { actor }: ActionContext,
  run: RunId,
  action: ReplanRequest['action'],
  selection: Pick<ReplanRequest, 'statuses'> & Partial<ReplanRequest>,
): ReplanRequest {
  const because = `${REPLANNED[action]} by ${actor}`
  return { run, action, actor, because, reopen: false, dryRun: false, ...selection }
}

async function getRun(store: Store, id: RunId): Promise<Run> {
  const run = await store.run(id)
  if (!run) throw unknownRun(id)
  return run
}

async function getTarget(store: Store, id: TargetId): Promise<Target> {
  const target = await store.target(id)
  if (!target) throw unknownTarget(id)
  return target
}
