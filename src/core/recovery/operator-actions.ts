import { whyNotCancel } from '../decide/cancelling.ts'
import { decideRevert, targetsToLookAt, type RevertDecision } from '../decide/revert.ts'
import { AlreadyRunning, EXIT, NotFound, Refused, UsageError } from '../model/errors.ts'
import { newId, shortId, type RunId, type TargetId } from '../model/id.ts'
import { INTEGER_MAX } from '../model/limits.ts'
import { isLive, sayRow, type Run } from '../model/run.ts'
import { isCrawlee } from '../model/crawlee.ts'
import type { Target } from '../model/target.ts'
import type { Deleted, Replan, Replanned, SetAside, Store } from '../store/store.ts'
import type { Door } from './recover.ts'

/** What a person does to one run or to targets. Each says no with the reason, or does it and is in the audit trail. */

export async function cancel(door: Door, id: RunId, because?: string): Promise<Run> {
  const run = await theRun(door.store, id)
  refuseCancel(run)
  const { actor } = door
  const moved = await door.store.moveRun({
    run: id,
    to: 'cancelled',
    action: 'cancel',
    because: because ?? `cancelled by ${actor}`,
    evidence: null,
    actor,
    only: {},
  })
  const now = await theRun(door.store, id)
  if (moved) return now
  refuseCancel(now)
  throw new Refused(`Run ${shortId(id)} keeps changing: look at it and try again.`)
}

/** Says no where `cancel` would, and does nothing else. */
export function refuseCancel(run: Run): void {
  if (!isLive(run.status))
    throw new Refused(`Run ${shortId(run.id)} has already ended: it is ${run.status}.`)
  const why = whyNotCancel(run)
  if (why !== null) throw new Refused(why)
}

export type Resumed = Replanned & { readonly run: Run }

/** Opens a run again: it goes on from its cursors when a worker takes it up. What failed or was held is tried again. */
export async function resume(
  door: Door,
  id: RunId,
  dryRun = false,
  because?: string,
): Promise<Resumed> {
  const { store } = door
  const run = await theRun(store, id)
  const chosen = { statuses: ['failed', 'stuck'], reopen: true, dryRun } as const
  const resumed = await store.replan({
    ...replanning(door, id, 'resume', chosen),
    ...(because !== undefined && { because }),
  })
  if (resumed.targets > 0 || resumed.reopened || isLive(run.status))
    return { ...resumed, run: await theRun(store, id) }
  const { parked } = run.counts.targets
  const why =
    parked > 0
      ? `all that is left of it is parked. Put it back with \`unstuck unpark --run ${shortId(id)}\``
      : 'nothing of it is left to do'
  throw new Refused(`Run ${shortId(id)} is ${run.status}, and ${why}.`)
}

/** A new run that follows this one from nothing. Answers the new one. */
export async function retry(door: Door, id: RunId, because?: string): Promise<Run> {
  const { store, actor } = door
  refuseAdopted(await theRun(store, id), 'retried: no row is ever added there')
  const newRun = newId()
  await store.retryRun({ run: id, newRun, actor, because: because ?? `retried by ${actor}` })
  return theRun(store, newRun)
}

/** Says no where `retry` would, and does nothing else. */
export async function refuseRetry({ store }: Door, run: Run): Promise<void> {
  refuseAdopted(run, 'retried: no row is ever added there')
  await refuseOtherLive(store, run)
  if (isLive(run.status) && run.counts.targets.in_progress > 0)
    throw new AlreadyRunning(run.source, run.id, 'and a worker has it')
}

export type Reverted = { readonly run: Run; readonly undid: string; readonly targets: number }

const TRAIL_MAX = 10_000
const REVERT_TRIES = 3

/** Takes back the last thing that was done to a run: a clean, a cancel, a fail, or what recovery set aside. */
export async function revert(
  door: Door,
  id: RunId,
  dryRun = false,
  why?: string,
): Promise<Reverted> {
  const { store, actor } = door
  for (let tries = 1; ; tries++) {
    // What a process that died has done to a row of a user's own is in the trail only then.
    if (!dryRun && (await theRun(store, id)).adopted) await store.settle(id)
    const run = await theRun(store, id)
    const decision = await decideFor(store, run)
    if (decision.action === 'refuse') {
      throw new Refused(
        `Run ${shortId(id)} cannot be taken back: ${decision.because}.`,
        decision.isOtherLive ? EXIT.alreadyRunning : EXIT.failed,
      )
    }
    const { undoes, to, targets, cancel: retried } = decision
    const because = why ?? `${undoes} taken back by ${actor}`
    const plan = { run: id, from: run.status, to, targets, cancel: retried, undoes, actor, because }
    if (dryRun || (await store.revert(plan))) {
      return { run: await theRun(store, id), undid: undoes, targets: targets.length }
    }
    // Somebody was faster; what there is now may still be taken back.
    if (tries === REVERT_TRIES)
      throw new Refused(`Run ${shortId(id)} keeps changing: look at it and try again.`)
  }
}

async function decideFor(store: Store, run: Run): Promise<RevertDecision> {
  const trail = await store.audit({ run: run.id, newestFirst: true, limit: TRAIL_MAX })
  const targets: Target[] = []
  for (const id of targetsToLookAt(trail)) {
    const target = await store.target(id)
    if (target) targets.push(target)
  }
  // How many rows of a user's own table may be live at once is the user's own affair.
  const live = run.adopted ? null : await store.liveRun(run.source)
  return decideRevert({ run, trail, targets, otherLive: live?.id === run.id ? null : live })
}

export type ResetOptions = {
  /** Only these. */
  readonly targets?: readonly TargetId[] | undefined
  readonly groups?: readonly string[] | undefined
  /** Only those that were tried at most so often. */
  readonly maxAttempts?: number | undefined
  readonly dryRun?: boolean | undefined
}

/** Failed targets of a run go on from their cursors. */
export async function resetFailed(
  door: Door,
  run: RunId,
  options: ResetOptions = {},
): Promise<Replanned> {
  const { targets, groups, maxAttempts: attemptsMax, dryRun = false } = options
  const isInRange =
    Number.isInteger(attemptsMax) && attemptsMax! >= 1 && attemptsMax! <= INTEGER_MAX
  if (attemptsMax !== undefined && !isInRange)
    throw new UsageError(`maxAttempts is a whole number from 1 to ${INTEGER_MAX}.`)
  const chosen = { statuses: ['failed'], targets, groups, attemptsMax, dryRun } as const
  return door.store.replan(replanning(door, run, 'reset-failed', chosen))
}

/** Sets targets aside, whoever has them. Answers those that were open. */
export async function park(
  { store, actor }: Door,
  targets: readonly TargetId[],
  because?: string,
): Promise<SetAside[]> {
  const parked = await store.setAside({ targets, actor, because: because ?? `parked by ${actor}` })
  for (const run of new Set(parked.map((one) => one.run))) await store.settle(run)
  return parked
}

/** Parked and held targets of a run go on from their cursors: all of them, or these. */
export function unpark(
  door: Door,
  run: RunId,
  { targets, groups, dryRun = false }: Partial<Pick<Replan, 'targets' | 'groups' | 'dryRun'>> = {},
): Promise<Replanned> {
  const chosen = { statuses: ['parked', 'stuck'], targets, groups, dryRun } as const
  return door.store.replan(replanning(door, run, 'unpark', chosen))
}

export type RewindOptions = {
  readonly to: number
  /** The address of the page after `to`, where the crawl goes by addresses. */
  readonly next?: string | undefined
  readonly cursor?: unknown
}

/** The one way a cursor goes back. What was saved stays saved; pages after `to` are fetched again. */
export async function rewind(door: Door, id: TargetId, options: RewindOptions): Promise<Target> {
  const { store, actor } = door
  const { to, next = null } = options
  await refuseRewind(door, id, options)
  const { cursor = await cursorAtStart(store, id) } = options
  await store.rewind({ target: id, to, next, cursor, actor, because: `rewound by ${actor}` })
  return theTarget(store, id)
}

/** None, but for a request of Crawlee's: it is in the cursor and not behind it. */
async function cursorAtStart(store: Store, id: TargetId): Promise<unknown> {
  const { run, cursor } = await theTarget(store, id)
  return isCrawlee(await theRun(store, run)) ? cursor : null
}

/** Says no where `rewind` would, and does nothing else. */
export async function refuseRewind(
  { store }: Door,
  id: TargetId,
  { to, next }: RewindOptions,
): Promise<void> {
  const target = await theTarget(store, id)
  const run = await theRun(store, target.run)
  refuseAdopted(run, 'rewound: how far it is stands in your own columns')
  if (!Number.isSafeInteger(to) || to < 0) {
    throw new UsageError('A target is rewound to a page: a whole number from 0.')
  }
  if (to > target.page) {
    throw new UsageError(
      `Target ${shortId(id)} stands at page ${target.page}: it can only go back.`,
    )
  }
  // Also for a target that is done: its last page had no next one, but the page before did.
  if (run.kind === 'crawl' && to > 0 && next === undefined) {
    throw new Refused(
      `The address of page ${to + 1} is not kept, and a crawl goes by addresses: give it with --next URL, ` +
        'or go back to the start with --to 0.',
    )
  }
  await refuseOtherLive(store, run)
}

/** What is not ours to do in a table of the user's own. */
export function refuseAdopted({ id, adopted }: Run, what: string): void {
  if (!adopted) return
  throw new Refused(
    `Run ${shortId(id)} is ${sayRow(adopted)}, a table of your own: it cannot be ${what}.`,
  )
}

async function refuseOtherLive(store: Store, { id, source }: Run): Promise<void> {
  const live = await store.liveRun(source)
  if (live && live.id !== id) throw new AlreadyRunning(source, live.id, `which is ${live.status}`)
}

export function deleteRun(
  { store, actor }: Door,
  run: RunId,
  withItems: boolean,
): Promise<Deleted> {
  return store.deleteRun({ run, withItems, actor, because: `deleted by ${actor}` })
}

function replanning(
  { actor }: Door,
  run: RunId,
  action: Replan['action'],
  chosen: Pick<Replan, 'statuses'> & Partial<Replan>,
): Replan {
  const because = `${action} by ${actor}`
  return { run, action, actor, because, reopen: false, dryRun: false, ...chosen }
}

async function theRun(store: Store, id: RunId): Promise<Run> {
  const run = await store.run(id)
  if (!run) throw new NotFound(`run ${id}`, '`unstuck runs` lists them.')
  return run
}

async function theTarget(store: Store, id: TargetId): Promise<Target> {
  const target = await store.target(id)
  if (!target)
    throw new NotFound(`target ${id}`, '`unstuck show RUN` lists those that need a person.')
  return target
}
