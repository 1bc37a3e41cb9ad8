import { isParkedOrStuck, refusePark, throwIf } from '../operator/refusals.ts'
import { RefusedError, UsageError } from '../core/model/errors.ts'
import { shortId, type RunId } from '../core/model/id.ts'
import { isLive, type Run } from '../core/model/run.ts'
import type { Target } from '../core/model/target.ts'
import { firstSentences, LINES_MAX, plainText } from '../lib/text/sentence.ts'
import { unstuckCommand } from '../core/model/shell-command.ts'
import type { ActionContext } from '../core/recovery/context.ts'
import * as operatorActions from '../operator/actions.ts'
import type { ReplanResult, Store } from '../core/store/store.ts'
import { runName } from '../core/model/traits.ts'
import { findTargets } from './find.ts'
import { plural, formatTargetStatus, nextStartCondition, targetRef } from './format.ts'
import {
  commandOnTargets,
  makeResult,
  NOTHING_CHANGED,
  type ActionResult,
  undoByPark,
  undoByUnpark,
} from './action-result.ts'

/** Operator actions on targets, for all interfaces: the action, its sentences, and how to revert it. */

/** Parks targets. Those that are done or parked already are unchanged. */
export type ParkResult = ActionResult & {
  /** The named targets that this parked or would park, in their earlier state. */
  readonly parked: readonly Target[]
}

export async function park(
  context: ActionContext,
  targets: readonly Target[],
  { dryRun, because }: { readonly dryRun: boolean; readonly because?: string | undefined },
): Promise<ParkResult> {
  const { store } = context
  const open = targets.filter(({ status }) => status !== 'done' && status !== 'parked')
  const runsOfOpen = await readRuns(store, open)
  for (const run of runsOfOpen) throwIf(refusePark(run))
  const live = dryRun ? [] : runsOfOpen.filter(({ status }) => isLive(status))
  const done = dryRun
    ? null
    : await operatorActions.park(
        context,
        open.map(({ id }) => id),
        because,
      )
  const parked = done ? open.filter(({ id }) => done.some(({ target }) => target === id)) : open
  const ended = await endedRuns(store, live)
  const undo = parked.every(({ status }) => status === 'planned' || status === 'in_progress')
    ? undoByUnpark(parked)
    : null
  const unpark = commandOnTargets('unpark', parked)
  const sentences = [
    `${plural(parked.length, 'target')} ${dryRun ? 'would be' : parked.length === 1 ? 'is' : 'are'} parked.`,
    ...describeUnchanged(targets.filter((target) => !parked.includes(target))),
    ...ended.map(describeEnded),
    ...(!dryRun && parked.length === 0 ? [NOTHING_CHANGED] : []),
    ...(!dryRun && parked.length > 0 && !undo ? [`To put them in the queue: \`${unpark}\``] : []),
  ]
  const runs = new Set(targets.map(({ run }) => run))
  return makeResult(dryRun, {
    run: runs.size === 1 ? await store.run([...runs][0]!) : null,
    targets: parked.length,
    parked,
    sentences,
    undo,
    command: commandOnTargets('park', targets, { because }),
  })
}

function describeEnded({ id, status }: Run): string {
  return `No other target of run ${shortId(id)} was open: it is ${status} now.`
}

/** `Unchanged: 91bc4f2a (done), 7701aa3e (parked).` */
function describeUnchanged(targets: readonly Target[]): string[] {
  if (targets.length === 0) return []
  const shown = targets
    .slice(0, LINES_MAX)
    .map((target) => `${targetRef(target)} (${formatTargetStatus(target.status).text})`)
  const more = targets.length > LINES_MAX ? ` and ${targets.length - LINES_MAX} more` : ''
  return [`Unchanged: ${shown.join(', ')}${more}.`]
}

async function readRuns(store: Store, targets: readonly Pick<Target, 'run'>[]): Promise<Run[]> {
  const ids = new Set(targets.map(({ run }) => run))
  return Promise.all([...ids].map(async (id) => (await store.run(id))!))
}

async function endedRuns(store: Store, live: readonly Run[]): Promise<Run[]> {
  const runs = await Promise.all(live.map(async ({ id }) => (await store.run(id))!))
  return runs.filter(({ status }) => !isLive(status))
}

type ReplannedRun = ReplanResult & { readonly run: RunId; readonly source: string }
export type ReplannedRuns = ActionResult & { readonly items: readonly ReplannedRun[] }

/** Failed targets of runs: all, those that match, or these. */
export async function resetFailed(
  context: ActionContext,
  runs: readonly Run[],
  options: operatorActions.ResetOptions & { readonly dryRun: boolean },
): Promise<ReplannedRuns> {
  const items = await replanEach(runs, ({ id }) =>
    operatorActions.resetFailed(context, id, options),
  )
  const named = await findTargets(context.store, options.targets ?? [])
  return replannedResult(context.store, items, {
    unchanged: 'No failed target matches.',
    hints: (after) => (after.traits.actions.includes('park') ? [PARK_HINT] : []),
    warning: NO_RESET_UNDO,
    dryRun: options.dryRun,
    undo: null,
    command: unstuckCommand('reset-failed', runs.map(runName), {
      yes: true,
      target: named.map(targetRef),
      group: options.groups,
      maxAttempts: options.maxAttempts,
    }),
  })
}

const NO_RESET_UNDO = 'A reset cannot be reverted.'
const PARK_HINT = 'To park one of them: `unstuck park TARGET`.'

type UnparkSelection = {
  readonly targets?: readonly Target[] | undefined
  readonly groups?: readonly string[] | undefined
  readonly dryRun: boolean
}

/** Parked and stuck targets of runs: all, those of these groups, or these. */
export async function unpark(
  context: ActionContext,
  runs: readonly Run[],
  selection: UnparkSelection,
): Promise<ReplannedRuns> {
  const { targets, groups, dryRun } = selection
  const parked =
    targets?.filter(isParkedOrStuck) ??
    (groups || dryRun ? [] : await listParked(context.store, runs))
  const items = await replanEach(runs, ({ id }) => {
    const own = targets?.filter(({ run }) => run === id).map((target) => target.id)
    return operatorActions.unpark(context, id, { targets: own, groups, dryRun })
  })
  const isWhole = parked.length === countReplanned(items)
  const unchanged = targets?.filter((target) => !isParkedOrStuck(target)) ?? []
  return replannedResult(context.store, items, {
    unchanged: ['No target is parked or stuck.', ...describeUnchanged(unchanged)].join(' '),
    hints: () => describeUnchanged(unchanged),
    dryRun,
    undo: isWhole ? undoByPark(parked) : null,
    command: unparkCommand(runs, selection),
  })
}

/** Of the named targets, those in the given groups: the command line accepts one or the other. */
function unparkCommand(runs: readonly Run[], { targets, groups }: UnparkSelection): string {
  if (!targets) {
    return unstuckCommand('unpark', [], { run: runs.map(runName), group: groups })
  }
  const selected = targets.filter(
    ({ group }) => !groups || (group !== null && groups.includes(group)),
  )
  return selected.length === 0 ? '' : commandOnTargets('unpark', selected)
}

const UNDO_TARGETS_MAX = 500

/** As many as fit in one undo. */
async function listParked(store: Store, runs: readonly Run[]): Promise<Target[]> {
  const statuses = ['parked', 'stuck'] as const
  const parked: Target[] = []
  for (const { id } of runs) {
    parked.push(...(await store.targets(id, { statuses, limit: UNDO_TARGETS_MAX })).items)
  }
  return parked
}

async function replanEach(
  runs: readonly Run[],
  replan: (run: Run) => Promise<ReplanResult>,
): Promise<ReplannedRun[]> {
  const items: ReplannedRun[] = []
  for (const run of runs) items.push({ run: run.id, source: run.source, ...(await replan(run)) })
  return items
}

function countReplanned(items: readonly ReplannedRun[]): number {
  return items.reduce((total, { targets }) => total + targets, 0)
}

async function replannedResult(
  store: Store,
  items: readonly ReplannedRun[],
  {
    unchanged,
    hints,
    warning,
    dryRun,
    ...done
  }: Pick<ActionResult, 'dryRun' | 'undo' | 'command'> & {
    /** Explains why no target was changed. */
    readonly unchanged: string
    readonly hints: (after: Run) => string[]
    /** Said before it is done. */
    readonly warning?: string
  },
): Promise<ReplannedRuns> {
  const after = await Promise.all(items.map(async ({ run }) => (await store.run(run))!))
  const changed = items.filter(({ targets }) => targets > 0)
  const lines = changed.map((item) => [describeReplanned(item, dryRun)])
  const sentences =
    changed.length === 0
      ? [unchanged, ...(dryRun ? [] : [NOTHING_CHANGED])]
      : [
          ...firstSentences(lines, '`--json` has each run').map(plainText),
          ...(dryRun && warning !== undefined ? [warning] : []),
          ...(dryRun ? [] : [describeNextStart(after), ...new Set(after.flatMap(hints))]),
        ]
  return makeResult(dryRun, {
    run: after.length === 1 ? after[0]! : null,
    targets: countReplanned(items),
    items,
    sentences,
    ...done,
  })
}

/** `3 targets of run 4f2a91bc of shop are back in the queue, and the run is open again.` */
function describeReplanned({ run, source, targets, reopened }: ReplannedRun, dryRun: boolean) {
  const are = dryRun ? 'would be' : targets === 1 ? 'is' : 'are'
  const again = reopened ? `, and the run ${dryRun ? 'would be' : 'is'} open again` : ''
  const what = `${plural(targets, 'target')} of run ${shortId(run)} of ${source}`
  return `${what} ${are} back in the queue${again}.`
}

/** `Work continues when a worker starts.` */
function describeNextStart(runs: readonly Run[]): string {
  return `Work continues when ${nextStartCondition(runs)}.`
}

/** One target, which must be failed. */
export async function resetTarget(
  context: ActionContext,
  target: Target,
  dryRun: boolean,
): Promise<ActionResult> {
  const { id, run, status } = target
  const short = targetRef(target)
  if (isParkedOrStuck(target)) {
    throw new RefusedError(
      `Target ${short} is ${status}, not failed: \`${unstuckCommand('unpark', [short])}\`.`,
    )
  }
  if (status !== 'failed')
    throw new RefusedError(
      `Target ${short} is ${formatTargetStatus(status).text}: there is nothing to reset.`,
    )
  return resetFailed(context, [(await context.store.run(run))!], { targets: [id], dryRun })
}

export type RewindResult = ActionResult & { readonly target: Target; readonly reopened: boolean }

export async function rewind(
  context: ActionContext,
  before: Target,
  { dryRun, ...where }: operatorActions.RewindOptions & { readonly dryRun: boolean },
): Promise<RewindResult> {
  const { store } = context
  const { to, next, cursor } = where
  const short = targetRef(before)
  if (to === before.page && next === undefined && cursor === undefined) {
    throw new UsageError(`Target ${short} is at page ${to} already.`)
  }
  const run = (await store.run(before.run))!
  const wasLive = isLive(run.status)
  const target = await operatorActions.rewind(context, before.id, { ...where, dryRun })
  const is = dryRun ? 'would be' : 'is'
  const sentences = [
    `Target ${short} ${before.key} ${is} rewound from page ${before.page} to page ${to}: ` +
      `page ${to + 1} ${is} fetched next.`,
  ]
  if (before.status === 'in_progress')
    sentences.push(`The worker that has it now ${dryRun ? 'would lose' : 'loses'} it.`)
  if (!wasLive) sentences.push(`Run ${shortId(before.run)} ${is} open again.`)
  sentences.push(
    run.traits.items === 'datasets'
      ? 'Saved items stay; repeated ones are updated if they have a key, else duplicated.'
      : 'Saved items stay; repeated ones are updated, not duplicated.',
  )
  if (dryRun) sentences.push('A rewind cannot be reverted.')
  return makeResult(dryRun, {
    run: await store.run(before.run),
    targets: 1,
    target,
    reopened: !wasLive,
    sentences,
    undo: null,
    command: unstuckCommand('rewind', [short], {
      to,
      next,
      cursor: cursor === undefined ? undefined : JSON.stringify(cursor),
    }),
  })
}
