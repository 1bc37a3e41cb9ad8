import { runName } from '../core/model/traits.ts'
import type { Run } from '../core/model/run.ts'
import { runView } from './view.ts'
import type { Undo, ApiCall, Verdict } from './results.ts'
import { shortId, type RunId } from '../core/model/id.ts'
import type { Target } from '../core/model/target.ts'
import { unstuckCommand } from '../core/model/shell-command.ts'
import { targetRef } from './format.ts'
import { firstSentences, type Sentence } from '../lib/text/sentence.ts'

/** What an operator action on one run, or on targets, changed or would change. */
export type ActionResult = {
  /** As it is now; null for targets of several runs. */
  readonly run: Run | null
  readonly targets: number
  /** The action is on the run itself: it changes one thing even if it has no target. */
  readonly isOnRun?: boolean
  readonly sentences: readonly string[]
  readonly dryRun: boolean
  /** Null: nothing was changed, or it cannot be reverted. */
  readonly undo: Undo | null
  /** The same on the command line. */
  readonly command: string
}

/** What goes with a deleted row of a table of your own. */
export const ROW_DELETION =
  'Rows of other tables that refer to it are deleted too, or prevent this, as your foreign keys say.'

/** Said of a row of your own that goes back in the queue. */
export const NO_UNDO =
  'This cannot be reverted: it belongs to your own program then; `unstuck history` keeps what stood in the row.'

export const NOTHING_CHANGED = 'Nothing was changed.'

/** Completes a result: a dry run has changed nothing, and so has no undo. */
export function makeResult<Facts extends Omit<ActionResult, 'dryRun'>>(
  dryRun: boolean,
  facts: Facts,
): Facts & Pick<ActionResult, 'dryRun'> {
  if (!dryRun) return { ...facts, dryRun }
  return { ...facts, dryRun, sentences: [...facts.sentences, NOTHING_CHANGED], undo: null }
}

export function actionResultView(result: ActionResult) {
  const { run, targets, isOnRun = false, sentences, dryRun, undo, command } = result
  return {
    run: run && runView(run),
    targets,
    count: isOnRun ? Math.max(1, targets) : targets,
    summary: sentences.filter((sentence) => sentence !== NOTHING_CHANGED).join(' '),
    sections: [{ heading: null, sentences: [...sentences] }],
    dryRun,
    undo,
    command,
  }
}

/** Verdicts that take targets from a run or end it. A run that only continues needs no undo. */
const REVERTIBLE: readonly string[] = ['park', 'hold', 'fail', 'retry', 'abandon']

/** A run with its name in commands. */
export type NamedRun = { readonly run: RunId; readonly name: string }

/** Returns the runs that an applied verdict took something from, each once. */
export function revertibleRuns(verdicts: readonly Verdict[]): NamedRun[] {
  const reverted = verdicts.filter(
    ({ action, outcome }) => outcome === 'applied' && REVERTIBLE.includes(action),
  )
  const named = new Map(reverted.map((one) => [one.run, nameOf(one)]))
  return [...named].map(([run, name]) => ({ run, name }))
}

/** Returns the name of a verdict's run. */
export function nameOf({ run, subject }: Verdict): string {
  return subject.kind === 'target' ? shortId(run) : subject.name
}

/** Returns the command that reverts each of these runs. */
export function undoSentences(runs: readonly NamedRun[]): readonly Sentence[] {
  const sentences = runs.map(({ name }): Sentence => [
    `Undo: \`${unstuckCommand('revert', [name])}\``,
  ])
  return firstSentences(sentences, '`unstuck history` lists what can be undone')
}

/** Returns `revert` for each of these runs; null when there is none. */
export function undoByRevert(runs: readonly NamedRun[]): Undo | null {
  if (runs.length === 0) return null
  return {
    label: runs.length === 1 ? 'Revert' : `Revert all ${runs.length}`,
    calls: runs.map(({ run }) => call(`/api/runs/${run}/revert`)),
    command: runs.map(({ name }) => unstuckCommand('revert', [name])).join(' && '),
  }
}

export function undoByCancel(run: Run, label: string): Undo {
  return {
    label,
    calls: [call(`/api/runs/${run.id}/cancel`)],
    command: unstuckCommand('cancel', [runName(run)]),
  }
}

/** Returns `unpark`: open targets that were parked go back in the queue as they were. */
export function undoByUnpark(
  targets: readonly Pick<Target, 'id' | 'run' | 'origin'>[],
): Undo | null {
  if (targets.length === 0) return null
  const byRun = Map.groupBy(targets, ({ run }) => run)
  return {
    label: 'Put back in the queue',
    calls: [...byRun].map(([run, all]) =>
      call(`/api/runs/${run}/unpark`, { targets: all.map(({ id }) => id) }),
    ),
    command: commandOnTargets('unpark', targets),
  }
}

/** Targets in one call; more are refused. */
export const TARGETS_MAX = 500

/**
 * Parks them again, where all of them were parked and are few enough to name. What was stuck or failed cannot be made so
 * again: only a worker sets these statuses.
 */
export function undoByPark(
  targets: readonly Pick<Target, 'id' | 'origin' | 'status' | 'lastError'>[],
): Undo | null {
  const isParked = targets.every(({ status }) => status === 'parked')
  if (targets.length === 0 || targets.length > TARGETS_MAX || !isParked) return null
  const errors = new Set(targets.map(({ lastError }) => lastError))
  const [because] = errors.size === 1 ? errors : []
  const reason = because && because.length <= BECAUSE_MAX ? { because } : {}
  return {
    label: 'Park again',
    calls: [call('/api/targets/park', { targets: targets.map(({ id }) => id), ...reason })],
    command: commandOnTargets('park', targets, reason),
  }
}

const BECAUSE_MAX = 500

/** What `acknowledge` changes: runs as a whole, and single targets. */
export type MarkedThings = {
  readonly runs: readonly Run[]
  readonly targets: readonly Pick<Target, 'id' | 'origin'>[]
}

/** Returns `acknowledge` the other way round; null if it names nothing, or too much for one call. */
export function undoByAcknowledge({ runs, targets }: MarkedThings, isUndo: boolean): Undo | null {
  const most = Math.max(runs.length, targets.length)
  if (most === 0 || most > TARGETS_MAX) return null
  const body = {
    ...(runs.length > 0 && { runs: runs.map(({ id }) => id) }),
    ...(targets.length > 0 && { targets: targets.map(({ id }) => id) }),
    ...(!isUndo && { undo: true }),
  }
  return {
    label: isUndo ? 'Acknowledge again' : 'Undo',
    calls: [call('/api/acknowledge', body)],
    command: acknowledgeCommand({ runs, targets }, { undo: !isUndo }),
  }
}

/** Returns `acknowledge` of these on the command line. */
export function acknowledgeCommand(
  { runs, targets }: MarkedThings,
  options: Parameters<typeof unstuckCommand>[2],
): string {
  return unstuckCommand('acknowledge', [...runs.map(runName), ...targets.map(targetRef)], options)
}

/** Returns the same action on the command line. */
export function commandOnTargets(
  name: string,
  targets: readonly Pick<Target, 'id' | 'origin'>[],
  options: Parameters<typeof unstuckCommand>[2] = {},
): string {
  const ids = targets.map(targetRef)
  return unstuckCommand(name, ids, options)
}

function call(path: string, body: Record<string, unknown> = {}): ApiCall {
  return { method: 'POST', path, body }
}
