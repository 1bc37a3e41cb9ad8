import { cancelBlockedReason } from '../decide/cancel.ts'
import { decideRevert, targetsToCheck, type RevertDecision } from '../decide/revert.ts'
import { AlreadyRunningError, NotFoundError, RefusedError, UsageError } from '../model/errors.ts'
import { newId, shortId, type RunId, type TargetId } from '../model/id.ts'
import { INTEGER_MAX } from '../model/limits.ts'
import { isLive, describeRow, type Run } from '../model/run.ts'
import { isCrawlee } from '../model/crawlee.ts'
import type { Target } from '../model/target.ts'
import type {
  DeleteResult,
  ReplanRequest,
  ReplanResult,
  ParkedTarget,
  Store,
} from '../store/store.ts'
import type { ActionContext } from './context.ts'

/** Actions of an operator on a run or on targets. Each throws with the reason, or is applied and recorded in the audit trail. */

export async function cancel(context: ActionContext, id: RunId, because?: string): Promise<Run> {
  const run = await getRun(context.store, id)
  assertCancellable(run)
  const { actor } = context
  const isMoved = await context.store.moveRun({
    run: id,
    to: 'cancelled',
    action: 'cancel',
    because: because ?? `cancelled by ${actor}`,
    evidence: null,
    actor,
    expected: {},
  })
  const current = await getRun(context.store, id)
  if (isMoved) return current
  assertCancellable(current)
  throw new RefusedError(`Run ${shortId(id)} keeps changing: look at it and try again.`)
}

/** Throws where `cancel` would, and changes nothing. */
export function assertCancellable(run: Run): void {
  if (!isLive(run.status))
    throw new RefusedError(`Run ${shortId(run.id)} has already ended: it is ${run.status}.`)
  const why = cancelBlockedReason(run)
  if (why !== null) throw new RefusedError(why)
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
  if (resumed.targets > 0 || resumed.reopened || isLive(run.status))
    return { ...resumed, run: await getRun(store, id) }
  const { parked } = run.counts.targets
  const why =
    parked > 0
      ? `all that is left of it is parked. Put it back with \`unstuck unpark --run ${shortId(id)}\``
      : 'nothing of it is left to do'
  throw new RefusedError(`Run ${shortId(id)} is ${run.status}, and ${why}.`)
}

/** Starts a new run of the same work from the beginning. Returns the new run. */
export async function retry(context: ActionContext, id: RunId, because?: string): Promise<Run> {
  const { store, actor } = context
  assertNotAdopted(await getRun(store, id), 'retried: no row is ever added there')
  const newRun = newId()
  await store.retryRun({ run: id, newRun, actor, because: because ?? `retried by ${actor}` })
  return getRun(store, newRun)
}

/** Throws where `retry` would, and changes nothing. */
export async function assertRetryable({ store }: ActionContext, run: Run): Promise<void> {
  assertNotAdopted(run, 'retried: no row is ever added there')
  await assertNoOtherLiveRun(store, run)
  if (isLive(run.status) && run.counts.targets.in_progress > 0)
    throw new AlreadyRunningError(run.source, run.id, 'and a worker has it')
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
    // Changes of adopted rows by a process that died are in the audit trail only after this.
    if (!dryRun && (await getRun(store, id)).adopted) await store.settle(id)
    const run = await getRun(store, id)
    const decision = await decideRunRevert(store, run)
    if (decision.action === 'refuse') {
      throw new RefusedError(`Run ${shortId(id)} cannot be taken back: ${decision.because}.`, {
        otherRunIsLive: decision.isOtherLive,
      })
    }
    const { undoes, to, targets, cancel: retried } = decision
    const because = why ?? `${undoes} taken back by ${actor}`
    const plan = { run: id, from: run.status, to, targets, cancel: retried, undoes, actor, because }
    if (dryRun || (await store.revert(plan))) {
      return { run: await getRun(store, id), undid: undoes, targets: targets.length }
    }
    // The run changed meanwhile; the new state may be revertible too.
    if (attempt === REVERT_ATTEMPTS_MAX)
      throw new RefusedError(`Run ${shortId(id)} keeps changing: look at it and try again.`)
  }
}

async function decideRunRevert(store: Store, run: Run): Promise<RevertDecision> {
  const trail = await store.audit({ run: run.id, newestFirst: true, limit: AUDIT_MAX })
  const targets: Target[] = []
  for (const id of targetsToCheck(trail)) {
    const target = await store.target(id)
    if (target) targets.push(target)
  }
  // Adopted tables may have several live rows of a source.
  const live = run.adopted ? null : await store.liveRun(run.source)
  return decideRevert({ run, trail, targets, otherLive: live?.id === run.id ? null : live })
}

export type ResetOptions = {
  /** Only these targets. */
  readonly targets?: readonly TargetId[] | undefined
  readonly groups?: readonly string[] | undefined
  /** Only targets with at most this many attempts. */
  readonly maxAttempts?: number | undefined
  readonly dryRun?: boolean | undefined
}

/** Puts failed targets back in line, from their cursors. */
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

/** Puts parked and stuck targets of a run back in line, from their cursors: all of them, or these. */
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

export type RewindOptions = {
  readonly to: number
  /** Address of the page after `to`, if the crawl uses addresses. */
  readonly next?: string | undefined
  readonly cursor?: unknown
}

/** Moves a cursor back. Saved items stay; pages after `to` are fetched again. */
export async function rewind(
  context: ActionContext,
  id: TargetId,
  options: RewindOptions,
): Promise<Target> {
  const { store, actor } = context
  const { to, next = null } = options
  await assertRewindable(context, id, options)
  const { cursor = await initialCursor(store, id) } = options
  await store.rewind({ target: id, to, next, cursor, actor, because: `rewound by ${actor}` })
  return getTarget(store, id)
}

/** None, but for a request of Crawlee's: it is in the cursor and not behind it. */
async function initialCursor(store: Store, id: TargetId): Promise<unknown> {
  const { run, cursor } = await getTarget(store, id)
  return isCrawlee(await getRun(store, run)) ? cursor : null
}

/** Throws where `rewind` would, and changes nothing. */
export async function assertRewindable(
  { store }: ActionContext,
  id: TargetId,
  { to, next }: RewindOptions,
): Promise<void> {
  const target = await getTarget(store, id)
  const run = await getRun(store, target.run)
  assertNotAdopted(run, 'rewound: how far it is stands in your own columns')
  if (!Number.isSafeInteger(to) || to < 0) {
    throw new UsageError('A target is rewound to a page: a whole number from 0.')
  }
  if (to > target.page) {
    throw new UsageError(
      `Target ${shortId(id)} stands at page ${target.page}: it can only go back.`,
    )
  }
  // Also for a target that is done: only its last page had no next one.
  if (run.kind === 'crawl' && to > 0 && next === undefined) {
    throw new RefusedError(
      `The address of page ${to + 1} is not kept, and a crawl goes by addresses: give it with --next URL, ` +
        'or go back to the start with --to 0.',
    )
  }
  await assertNoOtherLiveRun(store, run)
}

/** What is not ours to do in a table of the user's own. */
export function assertNotAdopted({ id, adopted }: Run, what: string): void {
  if (!adopted) return
  throw new RefusedError(
    `Run ${shortId(id)} is ${describeRow(adopted)}, a table of your own: it cannot be ${what}.`,
  )
}

async function assertNoOtherLiveRun(store: Store, { id, source }: Run): Promise<void> {
  const live = await store.liveRun(source)
  if (live && live.id !== id)
    throw new AlreadyRunningError(source, live.id, `which is ${live.status}`)
}

export function deleteRun(
  { store, actor }: ActionContext,
  run: RunId,
  withItems: boolean,
): Promise<DeleteResult> {
  return store.deleteRun({ run, withItems, actor, because: `deleted by ${actor}` })
}

function replanRequest(
  { actor }: ActionContext,
  run: RunId,
  action: ReplanRequest['action'],
  selection: Pick<ReplanRequest, 'statuses'> & Partial<ReplanRequest>,
): ReplanRequest {
  const because = `${action} by ${actor}`
  return { run, action, actor, because, reopen: false, dryRun: false, ...selection }
}

async function getRun(store: Store, id: RunId): Promise<Run> {
  const run = await store.run(id)
  if (!run) throw new NotFoundError(`run ${id}`, '`unstuck runs` lists them.')
  return run
}

async function getTarget(store: Store, id: TargetId): Promise<Target> {
  const target = await store.target(id)
  if (!target)
    throw new NotFoundError(`target ${id}`, '`unstuck show RUN` lists those that need a person.')
  return target
}
