import { isParkedOrStuck } from '../core/decide/allowed-actions.ts'
import { RefusedError, UsageError } from '../core/model/errors.ts'
import { shortId, type RunId } from '../core/model/id.ts'
import { isLive, type Run } from '../core/model/run.ts'
import type { Target } from '../core/model/target.ts'
import { unstuckCommand } from '../lib/text/shell-command.ts'
import type { ActionContext } from '../core/recovery/context.ts'
import * as operatorActions from '../core/recovery/operator-actions.ts'
import type { ReplanResult, Store } from '../core/store/store.ts'
import { plural, formatTargetStatus, nextStartCondition } from './format.ts'
import {
  commandOnTargets,
  makeResult,
  NOTHING_CHANGED,
  type ActionResult,
  undoByPark,
  undoByUnpark,
} from './action-result.ts'

/** Operator actions on targets, for all interfaces: the action, its sentences, and how to revert it. */

/** `3 targets back in line in run 4f2a91bc, which is open again.` */
export function describeReplanned(
  run: RunId,
  { targets, reopened }: ReplanResult,
  dryRun: boolean,
): string {
  const again = reopened ? `, which ${dryRun ? 'would be' : 'is'} open again` : ''
  const would = dryRun ? 'would be ' : ''
  return `${plural(targets, 'target')} ${would}back in line in run ${shortId(run)}${again}.`
}

/** `They go on when a worker starts.` */
export function describeNextStart(runs: readonly Run[]): string {
  return `They go on when ${nextStartCondition(runs)}.`
}

/** Parks targets. Those that are done or parked already are unchanged. */
export type ParkResult = ActionResult & {
  /** The named targets that this parked or would park, in their earlier state. */
  readonly parked: readonly Target[]
  /** Runs that had no other open target. */
  readonly ended: readonly Run[]
}

export async function park(
  context: ActionContext,
  targets: readonly Target[],
  { dryRun, because }: { readonly dryRun: boolean; readonly because?: string | undefined },
): Promise<ParkResult> {
  const { store } = context
  const open = targets.filter(({ status }) => status !== 'done' && status !== 'parked')
  const live = dryRun ? [] : await liveRunsOf(store, open)
  const done = dryRun
    ? null
    : await operatorActions.park(
        context,
        open.map(({ id }) => id),
        because,
      )
  const parked = done ? open.filter(({ id }) => done.some(({ target }) => target === id)) : open
  const ended = await endedRuns(store, live)
  const sentences = [
    `${plural(parked.length, 'target')} ${dryRun ? 'would be' : parked.length === 1 ? 'is' : 'are'} parked.`,
    ...ended.map(describeEnded),
    ...(!dryRun && parked.length === 0 ? [NOTHING_CHANGED] : []),
  ]
  const runs = new Set(targets.map(({ run }) => run))
  return makeResult(dryRun, {
    run: runs.size === 1 ? await store.run([...runs][0]!) : null,
    targets: parked.length,
    parked,
    ended,
    sentences,
    undo: allWereOpen(parked) ? undoByUnpark(parked) : null,
    command: commandOnTargets('park', targets, { because }),
  })
}

export function describeEnded({ id, status }: Run): string {
  return `Nothing else was open in run ${shortId(id)}: it is ${status} now.`
}

/** Put back in line, they return to their earlier state. */
export function allWereOpen(targets: readonly Target[]): boolean {
  return targets.every(({ status }) => status === 'planned' || status === 'in_progress')
}

async function liveRunsOf(store: Store, targets: readonly Target[]): Promise<string[]> {
  const live: string[] = []
  for (const id of new Set(targets.map(({ run }) => run))) {
    if (isLive((await store.run(id))!.status)) live.push(id)
  }
  return live
}

async function endedRuns(store: Store, live: readonly string[]): Promise<Run[]> {
  const runs = await Promise.all(live.map(async (id) => (await store.run(id))!))
  return runs.filter(({ status }) => !isLive(status))
}

const PARK_HINT = 'To set one aside: `unstuck park TARGET`.'

/** How to park one of their targets, where that is possible. */
export function parkHint(runs: readonly Run[]): string[] {
  return runs.some(({ traits }) => traits.actions.includes('park')) ? [PARK_HINT] : []
}

/** Failed targets of one run: all, those that match, or this one. */
export async function resetFailed(
  context: ActionContext,
  run: RunId,
  options: operatorActions.ResetOptions & { readonly dryRun: boolean },
): Promise<ActionResult> {
  const replanned = await operatorActions.resetFailed(context, run, options)
  return replannedResult(context.store, run, replanned, {
    nextSteps: (after) => [describeNextStart([after]), ...parkHint([after])],
    unchanged: 'No failed target fits.',
    dryRun: options.dryRun,
    undo: null,
    command: unstuckCommand('reset-failed', [shortId(run)], {
      yes: true,
      target: options.targets?.map(shortId),
      group: options.groups,
      maxAttempts: options.maxAttempts,
    }),
  })
}

/** Parked and stuck targets of one run: all, or these. */
export async function unpark(
  context: ActionContext,
  run: RunId,
  selection: {
    readonly targets?: readonly Target[] | undefined
    readonly groups?: readonly string[] | undefined
    readonly dryRun: boolean
  },
): Promise<ActionResult> {
  const { targets, groups, dryRun } = selection
  const ids = targets?.map(({ id }) => id)
  const parked =
    targets?.filter(isParkedOrStuck) ??
    (groups || dryRun ? [] : await listParked(context.store, run))
  const replanned = await operatorActions.unpark(context, run, { targets: ids, groups, dryRun })
  const isWhole = parked.length === replanned.targets
  return replannedResult(context.store, run, replanned, {
    nextSteps: (after) => [describeNextStart([after])],
    unchanged: 'Nothing is parked or held.',
    dryRun,
    undo: isWhole ? undoByPark(parked) : null,
    command: unparkCommand(run, selection),
  })
}

/** Of the named targets, those in the given groups: the command line accepts one or the other. */
function unparkCommand(
  run: RunId,
  { targets, groups }: Pick<Parameters<typeof unpark>[2], 'targets' | 'groups'>,
): string {
  if (!targets) return unstuckCommand('unpark', [], { run: shortId(run), group: groups })
  const selected = targets.filter(
    ({ group }) => !groups || (group !== null && groups.includes(group)),
  )
  if (selected.length === 0) return ''
  return commandOnTargets('unpark', selected)
}

const UNDO_TARGETS_MAX = 500

/** As many as fit in one undo. */
async function listParked(store: Store, run: RunId): Promise<Target[]> {
  const statuses = ['parked', 'stuck'] as const
  return (await store.targets(run, { statuses, limit: UNDO_TARGETS_MAX })).items
}

async function replannedResult(
  store: Store,
  run: RunId,
  replanned: ReplanResult,
  {
    nextSteps,
    unchanged,
    dryRun,
    ...done
  }: Pick<ActionResult, 'dryRun' | 'undo' | 'command'> & {
    readonly nextSteps: (after: Run) => string[]
    /** Explains why no target was changed. */
    readonly unchanged: string
  },
): Promise<ActionResult> {
  const after = (await store.run(run))!
  const sentences =
    replanned.targets > 0
      ? [describeReplanned(run, replanned, dryRun), ...(dryRun ? [] : nextSteps(after))]
      : [unchanged, ...(dryRun ? [] : [NOTHING_CHANGED])]
  return makeResult(dryRun, {
    run: after,
    targets: replanned.targets,
    sentences,
    ...done,
  })
}

/** One target, whatever parks it. */
export async function resetTarget(
  context: ActionContext,
  target: Target,
  dryRun: boolean,
): Promise<ActionResult> {
  const { id, run, status } = target
  const short = shortId(id)
  if (isParkedOrStuck(target)) {
    throw new RefusedError(`Target ${short} is ${status}, not failed: \`unstuck unpark ${short}\`.`)
  }
  if (status !== 'failed')
    throw new RefusedError(
      `Target ${short} is ${formatTargetStatus(status).text}: there is nothing to reset.`,
    )
  return resetFailed(context, run, { targets: [id], dryRun })
}

export type RewindResult = ActionResult & { readonly target: Target; readonly reopened: boolean }

export async function rewind(
  context: ActionContext,
  before: Target,
  { dryRun, ...where }: operatorActions.RewindOptions & { readonly dryRun: boolean },
): Promise<RewindResult> {
  const { store } = context
  const { to, next, cursor } = where
  const short = shortId(before.id)
  if (to === before.page && next === undefined && cursor === undefined) {
    throw new UsageError(`Target ${short} is at page ${to} already.`)
  }
  const run = (await store.run(before.run))!
  const wasLive = isLive(run.status)
  const target = await operatorActions.rewind(context, before.id, { ...where, dryRun })
  const [is, isFetched] = dryRun ? ['would go', 'would be'] : ['is', 'is']
  const sentences = [
    `${short} ${before.key} ${is} back from page ${before.page} to ${to}: ` +
      `page ${to + 1} ${isFetched} fetched next.`,
  ]
  if (before.status === 'in_progress')
    sentences.push(`Who works on it now ${dryRun ? 'would lose' : 'loses'} it.`)
  if (!wasLive) sentences.push(`Run ${shortId(before.run)} ${isFetched} open again.`)
  sentences.push(
    run.traits.items === 'datasets'
      ? 'What was saved stays; items that come again are updated if they have a key, else doubled.'
      : 'What was saved stays; items that come again are updated, not doubled.',
  )
  if (dryRun) sentences.push(`${NOTHING_CHANGED} Once done it has no undo.`)
  return {
    run: await store.run(before.run),
    targets: 1,
    target,
    reopened: !wasLive,
    sentences,
    dryRun,
    undo: null,
    command: unstuckCommand('rewind', [short], {
      to,
      next,
      cursor: cursor === undefined ? undefined : JSON.stringify(cursor),
    }),
  }
}
