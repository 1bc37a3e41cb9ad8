import { canCancel, cancelledIn } from '../core/decide/cancelling.ts'
import { shortId } from '../core/model/id.ts'
import { isLive, isRow, sayRow, type Run } from '../core/model/run.ts'
import { unstuckCommand } from '../core/model/shell-command.ts'
import type { Door } from '../core/recovery/recover.ts'
import * as steering from '../core/recovery/operator-actions.ts'
import { plural } from './format.ts'
import { NOTHING_CHANGED, type Done } from './action-result.ts'
import { undoByCancel, undoByRevert } from './undo.ts'

/** What people do to one run, for every door: the deed, what to say about it, and how it is taken back. */

export type Asked = { readonly dryRun: boolean; readonly because?: string | undefined }

export async function cancel(door: Door, run: Run, { dryRun, because }: Asked): Promise<Done> {
  const id = shortId(run.id)
  steering.refuseCancel(run)
  const held = run.counts.targets.in_progress
  const ended = dryRun ? run : await steering.cancel(door, run.id, because)
  const what = `Run ${id} of ${run.source}`
  return {
    run: ended,
    targets: held,
    said: [
      dryRun
        ? `${what}, ${run.status}, would be cancelled; its data would be kept.`
        : `${what} is cancelled; its data is kept.`,
      ...(run.adopted ? [STAYS_AT_WORK] : held > 0 ? [sayInHand(held)] : []),
      ...(dryRun ? [NOTHING_CHANGED] : []),
    ],
    dryRun,
    undo: dryRun ? null : undoByRevert([run.id]),
    command: unstuckCommand('cancel', [id], { because }),
  }
}

/** Nothing of ours is between a user's own program and its table. */
const STAYS_AT_WORK = 'A program of yours that works on it is not stopped by that.'

function sayInHand(held: number): string {
  return `${plural(held, 'target')} in hand: work on it stops after the page.`
}

/** `To end it again: …`, or what a row of a user's own table lacks for it. */
function sayEndAgain(run: Run): string[] {
  if (canCancel(run)) return [`To end it again: \`unstuck cancel ${shortId(run.id)}\``]
  if (!isRow(run)) return []
  return [`To end it again by hand, map ${cancelledIn(run.adopted!.table)} in the config.`]
}

export type Resumed = Done & { readonly run: Run; readonly reopened: boolean }

export async function resume(
  door: Door,
  { id, status: before }: Run,
  { dryRun, because }: Asked,
): Promise<Resumed> {
  const { run, targets, reopened } = await steering.resume(door, id, dryRun, because)
  const short = shortId(id)
  const what = `Run ${short} of ${run.source}`
  const are = dryRun ? 'would be' : targets === 1 ? 'is' : 'are'
  const said = [
    !reopened
      ? `${what} is ${run.status} already: there is nothing to open again.`
      : dryRun
        ? `${what}, which is ${before}, would be opened again.`
        : `${what} is ${run.status} again.`,
  ]
  if (targets > 0 && !isRow(run))
    said.push(`${plural(targets, 'failed or held target')} ${are} put back in line.`)
  if (dryRun) said.push(NOTHING_CHANGED)
  else if (run.status !== 'running') {
    said.push(
      run.adopted
        ? `It is ${sayRow(run.adopted)}, and goes on when your own program takes it up.`
        : 'It goes on when its worker starts: `unstuck work MODULE`, or `begin` in your code.',
    )
  }
  if (reopened && !dryRun) said.push(...sayEndAgain(run))
  // What failed is in line again, and nobody may say of a run that it failed: only a cancelled one can be made as it was.
  const isRestorable = reopened && before === 'cancelled' && targets === 0 && canCancel(run)
  return {
    run,
    targets,
    reopened,
    said,
    dryRun,
    undo: isRestorable && !dryRun ? undoByCancel(id, 'Cancel it again') : null,
    command: unstuckCommand('resume', [short], { because }),
  }
}

export type Retried = Done & {
  /** The new run; null in a dry run. */
  readonly next: Run | null
}

export async function retry(door: Door, old: Run, { dryRun, because }: Asked): Promise<Retried> {
  const id = shortId(old.id)
  const wasLive = isLive(old.status)
  const command = unstuckCommand('retry', [id], { because })
  if (dryRun) {
    await steering.refuseRetry(door, old)
    const said = [`A new run of ${old.source} would be queued, to follow ${id} from nothing.`]
    if (wasLive) said.push(`Run ${id}, ${old.status}, would be failed.`)
    said.push(NOTHING_CHANGED)
    return { next: null, run: old, targets: 0, said, dryRun, undo: null, command }
  }
  const next = await steering.retry(door, old.id, because)
  const said = [
    `Run ${shortId(next.id)} of ${next.source} is queued; it follows ${id} from nothing.`,
    'It begins when a worker starts. What was saved stays saved.',
  ]
  // A run that had ended before is as it was; one that was live was failed for the new one.
  const undo = wasLive ? undoByRevert([old.id]) : undoByCancel(next.id, 'Cancel the new run')
  return { next, run: next, targets: 0, said, dryRun, undo, command }
}

export type Reverted = Done & { readonly run: Run; readonly undid: string }

/** What people call it. */
const DEEDS: Readonly<Record<string, string>> = {
  abandon: 'The cleaning',
  cancel: 'The cancelling',
  fail: 'The failing',
  park: 'The parking',
  hold: 'The holding',
}

export async function revert(
  door: Door,
  { id, status: before }: Run,
  { dryRun, because }: Asked,
): Promise<Reverted> {
  const { run, undid, targets } = await steering.revert(door, id, dryRun, because)
  const short = shortId(id)
  const what = `${DEEDS[undid] ?? `The ${undid}`} of run ${short} of ${run.source}`
  const back = targets > 0 ? `, with ${plural(targets, 'target')} back in line` : ''
  const said = dryRun
    ? [`${what}, which is ${before}, would be taken back${back}.`, NOTHING_CHANGED]
    : [
        `${what} is taken back: it is ${run.status}${back}.`,
        `Nothing automatic ends it until ${run.adopted ? 'it has moved on' : 'a worker has had it again'}.`,
        ...(isLive(before) ? [] : sayEndAgain(run)),
      ]
  const isRestorable = undid === 'cancel' && !dryRun && canCancel(run)
  return {
    run,
    targets,
    undid,
    said,
    dryRun,
    undo: isRestorable ? undoByCancel(id, 'Cancel it again') : null,
    command: unstuckCommand('revert', [short], { because }),
  }
}
