import * as operatorActions from '../operator/actions.ts'
import {
  cancelSetting,
  refuseCancel,
  refuseMove,
  refuseRetry,
  throwIf,
} from '../operator/refusals.ts'
import { newId } from '../core/model/id.ts'
import { isLive, type Run } from '../core/model/run.ts'
import { describeOrigin, runName } from '../core/model/traits.ts'
import { unstuckCommand } from '../core/model/shell-command.ts'
import { assessRun } from '../core/recovery/assess.ts'
import type { ActionContext, OperatorContext } from '../core/recovery/context.ts'
import { describeContinuation, loadLastStart } from './continuation.ts'
import { plural } from './format.ts'
import {
  makeResult,
  type ActionResult,
  NO_UNDO,
  undoByCancel,
  undoByRevert,
} from './action-result.ts'
import { RefusedError } from '../core/model/errors.ts'
import type { Store } from '../core/store/store.ts'
import { describeNextStart } from './sources.ts'
import { loadSource } from './find.ts'
import { requeueStuckRow } from './stuck-rows.ts'

/** Operator actions on one run, for all interfaces: the action, its sentences, and how to revert it. */

export type ActionRequest = { readonly dryRun: boolean; readonly because?: string | undefined }

export async function cancel(
  context: ActionContext,
  run: Run,
  request: ActionRequest,
): Promise<ActionResult> {
  throwIf(refuseCancel(run))
  const claimed = run.counts.targets.in_progress
  const ended = request.dryRun
    ? run
    : await operatorActions.cancel(context, run.id, request.because)
  return endResult(run, ended, request, {
    targets: claimed,
    verb: 'cancel',
    status: 'cancelled',
    more: claimed > 0 && run.traits.continuedBy !== 'own-program' ? [describeClaimed(claimed)] : [],
  })
}

/** Ends a row of a table of your own as failed. */
export async function fail(
  context: ActionContext,
  run: Run,
  request: ActionRequest,
): Promise<ActionResult> {
  throwIf(refuseMove(run, 'fail'))
  const ended = request.dryRun ? run : await operatorActions.fail(context, run.id, request.because)
  return endResult(run, ended, request, { targets: 0, verb: 'fail', status: 'failed', more: [] })
}

function endResult(
  before: Run,
  run: Run,
  { dryRun, because }: ActionRequest,
  {
    verb,
    status,
    more,
    targets,
  }: { verb: string; status: string; more: readonly string[]; targets: number },
): ActionResult {
  const id = runName(run)
  const what = `Run ${id} of ${run.source}`
  return makeResult(dryRun, {
    run,
    isOnRun: true,
    targets,
    sentences: [
      dryRun
        ? `${what}, ${before.status}, would be ${status}; its data would be kept.`
        : `${what} is ${status}; its data is kept.`,
      ...(run.traits.continuedBy === 'own-program' ? [OWN_PROGRAM_CONTINUES] : more),
    ],
    undo: undoByRevert([{ run: run.id, name: id }]),
    command: unstuckCommand(verb, [id], { because }),
  })
}

/** A user's own program is not stopped by Unstuck. */
const OWN_PROGRAM_CONTINUES = 'A program of yours that works on it is not stopped.'

function describeClaimed(claimed: number): string {
  return `${plural(claimed, 'target')} in progress: its worker stops after the current page.`
}

/** `To end it again: …`, or the setting that is missing for it. */
function howToEndAgain(run: Run): string[] {
  const { actions } = run.traits
  const verb = (['cancel', 'fail'] as const).find((one) => actions.includes(one))
  if (verb) return [`To end it again: \`${unstuckCommand(verb, [runName(run)])}\``]
  if (run.traits.hasTargets) return []
  return [`To end it again by hand, map ${cancelSetting(run)} in the config.`]
}

export type ResumeResult = ActionResult & { readonly run: Run; readonly reopened: boolean }

export async function resume(
  context: OperatorContext,
  old: Run,
  { dryRun, because }: ActionRequest,
): Promise<ResumeResult> {
  const { id, status: before } = old
  if (before === 'running' && old.traits.origin && old.kind === 'single')
    return resumeStuckRow(context, old, { dryRun, because })
  const { run, targets, reopened } = await operatorActions.resume(context, id, dryRun, because)
  const short = runName(run)
  const what = `Run ${short} of ${run.source}`
  const are = dryRun ? 'would be' : targets === 1 ? 'is' : 'are'
  const sentences = [
    !reopened
      ? `${what} is ${run.status} already: there is nothing to reopen.`
      : dryRun
        ? `${what}, which is ${before}, would be opened again.`
        : `${what} is ${run.status} again.`,
  ]
  if (targets > 0 && run.traits.hasTargets)
    sentences.push(`${plural(targets, 'failed or stuck target')} ${are} put back in the queue.`)
  if (!dryRun && run.status !== 'running') {
    const { origin } = run.traits
    sentences.push(
      origin
        ? `It is ${describeOrigin(origin)}, and continues when your own program takes it up.`
        : ((await describeWait(context.store, run)) ??
            describeContinuation(run, await loadLastStart(context, run))),
    )
  }
  if (reopened && dryRun && run.traits.origin) sentences.push(NO_UNDO)
  if (reopened && !dryRun) sentences.push(...howToEndAgain(run))
  // Failed targets are open again, so the run cannot be restored as failed; only a cancelled one can be
  // restored.
  const canUndo =
    reopened && before === 'cancelled' && targets === 0 && run.traits.actions.includes('cancel')
  return makeResult(dryRun, {
    run,
    isOnRun: true,
    targets,
    reopened,
    sentences,
    undo: canUndo ? undoByCancel(run, 'Cancel it again') : null,
    command: unstuckCommand('resume', [short], { because }),
  })
}

/** A row in progress that no program seems to work on. */
async function resumeStuckRow(
  context: OperatorContext,
  old: Run,
  { dryRun, because }: ActionRequest,
): Promise<ResumeResult> {
  const assessed = await assessRun(context, old)
  const run = await requeueStuckRow(context, assessed, { dryRun, because })
  const what = `Run ${runName(old)} of ${old.source}`
  const { table } = old.traits.origin!
  return makeResult(dryRun, {
    run,
    isOnRun: true,
    targets: 0,
    reopened: true,
    sentences: [
      dryRun
        ? `${what}, which is running, would be put back in the queue of ${table}. ${NO_UNDO}`
        : `${what} is ${run.status}: it continues when your own program takes it up.`,
      OWN_PROGRAM_CONTINUES,
    ],
    undo: null,
    command: unstuckCommand('resume', [runName(old)], { because }),
  })
}

/** What a run waits for that no worker can take up: the end of a pause, or its supervisor. Null for any other run. */
export async function describeWait(store: Store, run: Run): Promise<string | null> {
  const { paused, source } = run
  if (paused)
    return `It waits until \`${unstuckCommand('unpause', [source])}\`: its source is paused.`
  const { state } = await loadSource(store, source)
  return describeNextStart(run, state, await store.now())
}

export type RetryResult = ActionResult & {
  /** The new run; null in a dry run. */
  readonly next: Run | null
}

export async function retry(
  context: ActionContext,
  old: Run,
  { dryRun, because }: ActionRequest,
): Promise<RetryResult> {
  const id = runName(old)
  const wasLive = isLive(old.status)
  if (old.traits.origin) return retryRow(context, old, { dryRun, because })
  const command = unstuckCommand('retry', [id], { because })
  if (dryRun) {
    throwIf(refuseRetry(old, await operatorActions.otherLiveRun(context.store, old)))
    const sentences = [`A new run of ${old.source} would be queued, which starts run ${id} over.`]
    if (wasLive) sentences.push(`Run ${id}, ${old.status}, would be failed.`)
    const unchanged = { next: null, run: old, isOnRun: true, targets: 0, undo: null }
    return makeResult(dryRun, { ...unchanged, sentences, command })
  }
  const next = await operatorActions.retry(context, old.id, because)
  const sentences = [
    `Run ${runName(next)} of ${next.source} is queued; it starts run ${id} over.`,
    `${(await describeWait(context.store, next)) ?? 'It begins when a worker starts.'} Saved items stay.`,
  ]
  // A run that had ended before is unchanged; a live one was failed for the new one.
  const undo = wasLive
    ? undoByRevert([{ run: old.id, name: runName(old) }])
    : undoByCancel(next, 'Cancel the new run')
  const queued = { next, run: next, isOnRun: true, targets: 0, undo }
  return makeResult(dryRun, { ...queued, sentences, command })
}

/** A row stays one row: it goes back in the queue of its table, without its end and error. */
async function retryRow(
  { store, actor }: ActionContext,
  old: Run,
  { dryRun, because }: ActionRequest,
): Promise<RetryResult> {
  const name = runName(old)
  throwIf(refuseRetry(old, null))
  if (isLive(old.status) || old.status === 'succeeded')
    throw new RefusedError(
      `Run ${name} is ${old.status}: only what ended without success is retried.`,
    )
  const why = because ?? `retried by ${actor}`
  if (!dryRun) await store.retryRun({ run: old.id, newRun: newId(), actor, because: why })
  const run = (await store.run(old.id))!
  const sentences = dryRun
    ? [`Run ${name} of ${old.source}, which is ${old.status}, would be queued again. ${NO_UNDO}`]
    : [`Run ${name} of ${old.source} is ${run.status} again.`, OWN_PROGRAM_TAKES_UP]
  const command = unstuckCommand('retry', [name], { because })
  const undo = run.traits.actions.includes('cancel') ? undoByCancel(run, 'Cancel it') : null
  return makeResult(dryRun, { next: run, run, isOnRun: true, targets: 0, sentences, undo, command })
}

const OWN_PROGRAM_TAKES_UP = 'It continues when your own program takes it up.'

export type RevertResult = ActionResult & { readonly run: Run; readonly undid: string }

export async function revert(
  context: ActionContext,
  { id, status: before }: Run,
  { dryRun, because }: ActionRequest,
): Promise<RevertResult> {
  const { run, undid, targets } = await operatorActions.revert(context, id, dryRun, because)
  const short = runName(run)
  const what = `"${undid === 'abandon' ? 'clean' : undid}" on run ${short} of ${run.source}`
  const back = targets > 0 ? `, with ${plural(targets, 'target')} back in the queue` : ''
  const sentences = dryRun
    ? [`Would revert ${what}, which is ${before}${back}.`]
    : [
        `Reverted ${what}: it is ${run.status}${back}.`,
        `It is not ended automatically until ${run.traits.ownerIsKnown ? 'a worker has claimed it again' : 'it has made progress'}.`,
        ...(isLive(before) ? [] : howToEndAgain(run)),
      ]
  const canUndo = undid === 'cancel' && run.traits.actions.includes('cancel')
  return makeResult(dryRun, {
    run,
    isOnRun: true,
    targets,
    undid,
    sentences,
    undo: canUndo ? undoByCancel(run, 'Cancel it again') : null,
    command: unstuckCommand('revert', [short], { because }),
  })
}
