import * as operatorActions from '../core/recovery/operator-actions.ts'
import { refuseCancel, refuseRetry, throwIf } from '../core/decide/allowed-actions.ts'
import { shortId, newId } from '../core/model/id.ts'
import { isLive, type Run } from '../core/model/run.ts'
import { describeOrigin } from '../core/model/traits.ts'
import { unstuckCommand } from '../lib/text/shell-command.ts'
import type { ActionContext } from '../core/recovery/context.ts'
import { plural } from './format.ts'
import { makeResult, type ActionResult, undoByCancel, undoByRevert } from './action-result.ts'
import { UsageError } from '../core/model/errors.ts'
import { checkSource } from '../lib/validate/source.ts'
import type { Store } from '../core/store/store.ts'
import type { SourcePolicies } from './policy-settings.ts'

/** Operator actions on one run, for all interfaces: the action, its sentences, and how to revert it. */

export type ActionRequest = { readonly dryRun: boolean; readonly because?: string | undefined }

export async function cancel(
  context: ActionContext,
  run: Run,
  { dryRun, because }: ActionRequest,
): Promise<ActionResult> {
  const id = shortId(run.id)
  throwIf(refuseCancel(run))
  const claimed = run.counts.targets.in_progress
  const ended = dryRun ? run : await operatorActions.cancel(context, run.id, because)
  const what = `Run ${id} of ${run.source}`
  return makeResult(dryRun, {
    run: ended,
    isOnRun: true,
    targets: claimed,
    sentences: [
      dryRun
        ? `${what}, ${run.status}, would be cancelled; its data would be kept.`
        : `${what} is cancelled; its data is kept.`,
      ...(run.traits.continuedBy === 'own-program'
        ? [OWN_PROGRAM_CONTINUES]
        : claimed > 0
          ? [describeClaimed(claimed)]
          : []),
    ],
    undo: undoByRevert([run.id]),
    command: unstuckCommand('cancel', [id], { because }),
  })
}

/** A user's own program is not stopped by Unstuck. */
const OWN_PROGRAM_CONTINUES = 'A program of yours that works on it is not stopped.'

function describeClaimed(claimed: number): string {
  return `${plural(claimed, 'target')} in progress: its worker stops after the current page.`
}

/** `To end it again: …`, or the setting that is missing for it. */
function howToEndAgain(run: Run): string[] {
  if (run.traits.actions.includes('cancel'))
    return [`To end it again: \`unstuck cancel ${shortId(run.id)}\``]
  const { cancelSetting } = run.traits
  return cancelSetting ? [`To end it again by hand, map ${cancelSetting} in the config.`] : []
}

export type ResumeResult = ActionResult & { readonly run: Run; readonly reopened: boolean }

export async function resume(
  context: ActionContext,
  { id, status: before }: Run,
  { dryRun, because }: ActionRequest,
): Promise<ResumeResult> {
  const { run, targets, reopened } = await operatorActions.resume(context, id, dryRun, because)
  const short = shortId(id)
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
        : 'It continues when its worker starts: `unstuck work MODULE`, or `begin` in your code.',
    )
  }
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
    undo: canUndo ? undoByCancel(id, 'Cancel it again') : null,
    command: unstuckCommand('resume', [short], { because }),
  })
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
  const id = shortId(old.id)
  const wasLive = isLive(old.status)
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
    `Run ${shortId(next.id)} of ${next.source} is queued; it starts run ${id} over.`,
    'It begins when a worker starts. Saved items stay.',
  ]
  // A run that had ended before is unchanged; a live one was failed for the new one.
  const undo = wasLive ? undoByRevert([old.id]) : undoByCancel(next.id, 'Cancel the new run')
  const queued = { next, run: next, isOnRun: true, targets: 0, undo }
  return makeResult(dryRun, { ...queued, sentences, command })
}

export type RevertResult = ActionResult & { readonly run: Run; readonly undid: string }

export async function revert(
  context: ActionContext,
  { id, status: before }: Run,
  { dryRun, because }: ActionRequest,
): Promise<RevertResult> {
  const { run, undid, targets } = await operatorActions.revert(context, id, dryRun, because)
  const short = shortId(id)
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
    undo: canUndo ? undoByCancel(id, 'Cancel it again') : null,
    command: unstuckCommand('revert', [short], { because }),
  })
}

/** It is passed in an environment variable, whose limit on Linux is 128 KB. */
const INPUT_MAX = 100_000

/** Queues a run of a command's source. `input`: any JSON, for its command. */
export async function enqueueSource(
  store: Store,
  settings: SourcePolicies,
  source: string,
  input: unknown,
): Promise<Run> {
  checkSource(source)
  if (Buffer.byteLength(JSON.stringify(input) ?? '') > INPUT_MAX) {
    throw new UsageError(
      'The input is larger than 100 KB. Put it into a file, and its path into the input.',
    )
  }
  const id = newId()
  await store.enqueue({ id, source, kind: 'single', policy: settings.policyFor(source), input })
  return (await store.run(id))!
}
