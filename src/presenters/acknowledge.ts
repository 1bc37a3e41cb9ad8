import { unknownRun } from '../core/model/errors.ts'
import { shortId, type RunId } from '../core/model/id.ts'
import { isLive, type Run } from '../core/model/run.ts'
import { DEAD_LETTER_STATUSES, type Target } from '../core/model/target.ts'
import { runName } from '../core/model/traits.ts'
import { assess, type Assessment } from '../core/recovery/assess.ts'
import { isStuckRow } from '../core/recovery/assess-workers.ts'
import type { ActionContext, OperatorContext } from '../core/recovery/context.ts'
import { LATEST_FAILED_MAX } from '../core/store/reads.ts'
import type { Store } from '../core/store/store.ts'
import { ACKNOWLEDGE_STORE, type AcknowledgeRequest } from '../features/acknowledge/store/store.ts'
import { refuseAcknowledge, refuseAcknowledgeTarget, throwIf } from '../operator/refusals.ts'
import {
  presentAcknowledged,
  type AcknowledgeActionResult,
  type AcknowledgedRun,
} from './acknowledge-text.ts'
import { countAcknowledgedOf, countDeadLettersOf, loadAcknowledged } from './acknowledged.ts'
import {
  acknowledgeCommand,
  TARGETS_MAX,
  undoByAcknowledge,
  type ActionResult,
  type MarkedThings,
} from './action-result.ts'
import { selectDeadLetters } from './dead-letter-replan.ts'
import type { DeadLetterSelection } from './dead-letters.ts'
import { plural } from './format.ts'
import { isStuck } from './stuck-rows.ts'

/** Acknowledging what failed, is stuck or parked, for all interfaces: select, refuse, change, word the result. */

export type AcknowledgeOptions = {
  readonly undo: boolean
  readonly dryRun: boolean
  readonly because?: string | undefined
}

/** Runs as a whole, or only targets of these groups, and single targets. */
export type AcknowledgeSelection = {
  readonly runs: readonly Run[]
  readonly targets?: readonly Target[] | undefined
  readonly groups?: readonly string[] | undefined
}

/** What of it is not refused. */
type Accepted = AcknowledgeSelection & { readonly targets: readonly Target[] }

/** What is marked of one run: all of it, its targets of some groups, or some of its targets. */
type RunPart = Pick<AcknowledgedRun, 'run' | 'source' | 'name'> &
  Pick<AcknowledgeRequest, 'targets' | 'groups' | 'stuckRows'>

/** Sets or removes the mark. Throws the refusal if nothing of the selection can be acknowledged. */
export async function acknowledge(
  context: OperatorContext,
  selection: AcknowledgeSelection,
  options: AcknowledgeOptions,
): Promise<AcknowledgeActionResult> {
  const { store } = context
  const { undo: isUndo, dryRun, because } = options
  const runsOfTargets = await readRunsOfTargets(store, selection)

  const assessment = await assessRows(context, selection)
  const accepted = acceptOrRefuse(selection, runsOfTargets, assessment)

  const changed = dryRun ? null : await findChanged(store, accepted, isUndo)
  const items = await changeMarks(context, partsOf(accepted, runsOfTargets, assessment), options)

  const ids = new Set([...selection.runs.map(({ id }) => id), ...runsOfTargets.keys()])
  const run = ids.size === 1 ? await store.run([...ids][0]!) : null
  const undo = changed && undoByAcknowledge(changed, isUndo)
  const flags = { undo: isUndo, group: selection.groups, because }
  const command = acknowledgeCommand(accepted, flags)
  return presentAcknowledged(items, { run, undo, command }, options)
}

/** Acknowledges the dead letters of a group or a source, or undoes it. */
export async function acknowledgeDeadLetters(
  context: ActionContext,
  selection: Omit<DeadLetterSelection, 'acknowledged'>,
  options: AcknowledgeOptions,
  signal: AbortSignal,
): Promise<ActionResult> {
  const { undo: isUndo } = options
  const which = { ...selection, acknowledged: isUndo }
  const { letters, left } = await selectDeadLetters(context.store, which, signal)
  const parts = [...Map.groupBy(letters, ({ run }) => run)].map(([run, own]) => ({
    run,
    source: own[0]!.source,
    name: shortId(run),
    targets: own.map(({ id }) => id),
  }))
  const items = await changeMarks(context, parts, options)
  const undo = undoByAcknowledge({ runs: [], targets: letters }, isUndo)
  const result = presentAcknowledged(items, { run: null, undo, command: '' }, options)
  if (left === 0) return result
  const more = `${plural(left, 'more target')} left for another call.`
  return { ...result, sentences: [...result.sentences, more] }
}

const RUNS_MAX = 500

/** Selects the runs that have something to acknowledge, or to undo: of a source, or of all. */
export async function findAcknowledgeable(
  store: Store,
  { source, undo }: { readonly source?: string | undefined; readonly undo: boolean },
): Promise<Run[]> {
  // Also runs that failed without a target to show for it.
  const failed = undo
    ? await store.runs({ source, statuses: ['failed', 'abandoned'], limit: RUNS_MAX })
    : await store.runs({ latestFailed: true, limit: LATEST_FAILED_MAX })
  const whole = failed.items.filter(
    (run) =>
      (source === undefined || run.source === source) && (run.acknowledgedAt !== null) === undo,
  )
  const found = [...(await runsWithDeadLetters(store, { source, undo })), ...whole]
  const byId = new Map(found.map((run) => [run.id, run]))
  return [...byId.values()].filter((run) => refuseAcknowledge(run) === null)
}

async function runsWithDeadLetters(
  store: Store,
  { source, undo }: { readonly source: string | undefined; readonly undo: boolean },
): Promise<Run[]> {
  const deadLetters = undo ? 'acknowledged' : 'unacknowledged'
  const found: Run[] = []
  for (let after: string | undefined; ;) {
    const { items, next } = await store.runs({ source, deadLetters, after, limit: RUNS_MAX })
    found.push(...items)
    if (next === null) return found
    after = next
  }
}

/** Reads the runs of the selected targets, by id. Throws if one was deleted meanwhile. */
async function readRunsOfTargets(
  store: Store,
  { targets = [] }: AcknowledgeSelection,
): Promise<ReadonlyMap<RunId, Run>> {
  const runs = new Map<RunId, Run>()
  for (const id of new Set(targets.map(({ run }) => run))) {
    const run = await store.run(id)
    if (!run) throw unknownRun(id)
    runs.set(id, run)
  }
  return runs
}

/** Returns what can be acknowledged of the selection. Throws the first refusal if nothing can. */
function acceptOrRefuse(
  { runs, targets = [], groups }: AcknowledgeSelection,
  runsOfTargets: ReadonlyMap<RunId, Run>,
  assessment: Assessment | null,
): Accepted {
  const ofRuns = runs.map((run) => refuseAcknowledge(run, isStuckRun(run, assessment)))
  const ofTargets = targets.map((target) =>
    refuseAcknowledgeTarget(target, runsOfTargets.get(target.run)!),
  )
  const [first = null, ...others] = [...ofRuns, ...ofTargets]
  if (others.every((refusal) => refusal !== null)) throwIf(first)
  return {
    runs: runs.filter((_, n) => ofRuns[n] === null),
    targets: targets.filter((_, n) => ofTargets[n] === null),
    groups,
  }
}

/** Assesses the selected live rows of tables of your own, all at once: that reads every worker. Null if there are none. */
async function assessRows(
  context: OperatorContext,
  { runs }: AcknowledgeSelection,
): Promise<Assessment | null> {
  const isRow = ({ traits, status }: Run): boolean => traits.origin !== null && isLive(status)
  return runs.some(isRow) ? assess(context) : null
}

/** A live row of a table of your own is acknowledged if it is stuck. */
function isStuckRun({ id, traits }: Run, assessment: Assessment | null): boolean {
  const found = assessment?.runs.find(({ run }) => run.id === id)
  return traits.origin !== null && found !== undefined && isStuck(found)
}

/** Returns the workers of the stuck rows of a table of targets, each with the hash of its row. */
function findStuckRows(
  { id, kind, traits }: Run,
  assessment: Assessment | null,
): AcknowledgeRequest['stuckRows'] {
  if (traits.origin === null || kind === 'single' || assessment === null) return undefined
  const stuck = assessment.workers.filter((one) => one.runs.has(id) && isStuckRow(one))
  return new Map(stuck.map(({ worker, evidence }) => [worker.id, evidence.rowHash]))
}

/** Returns what will be changed, so that the undo leaves alone what was marked before. Stops when it is too much for an undo. */
async function findChanged(
  store: Store,
  { runs, targets, groups }: Accepted,
  isUndo: boolean,
): Promise<MarkedThings> {
  const marks = await loadAcknowledged(store, runs)
  const isWhole = (run: Run): boolean =>
    !groups && countAcknowledgedOf(run, marks) === (isUndo ? countDeadLettersOf(run) : 0)
  const single = targets.filter(({ acknowledgedAt }) => (acknowledgedAt !== null) === isUndo)
  const filter = { statuses: DEAD_LETTER_STATUSES, acknowledged: isUndo, limit: TARGETS_MAX + 1 }
  for (const run of runs.filter((one) => !isWhole(one))) {
    for (const group of new Set(groups ?? [undefined])) {
      if (single.length > TARGETS_MAX) break
      single.push(...(await store.targets(run.id, { ...filter, group })).items)
    }
  }
  return { runs: runs.filter(isWhole), targets: single }
}

function partsOf(
  { runs, targets, groups }: Accepted,
  runsOfTargets: ReadonlyMap<RunId, Run>,
  assessment: Assessment | null,
): RunPart[] {
  const nameRun = (run: Run) => ({ run: run.id, source: run.source, name: runName(run) })
  return [
    ...runs.map((run) => ({
      ...nameRun(run),
      groups,
      stuckRows: findStuckRows(run, assessment),
    })),
    ...[...Map.groupBy(targets, ({ run }) => run)].map(([run, own]) => ({
      ...nameRun(runsOfTargets.get(run)!),
      targets: own.map(({ id }) => id),
    })),
  ]
}

/** Sets or removes the marks, and returns the runs of which something was changed. */
async function changeMarks(
  { store, actor }: ActionContext,
  parts: readonly RunPart[],
  { undo, dryRun, because }: AcknowledgeOptions,
): Promise<AcknowledgedRun[]> {
  const extension = await store.extend(ACKNOWLEDGE_STORE)
  const reason = because ?? `${undo ? 'acknowledgement undone' : 'acknowledged'} by ${actor}`
  const changed: AcknowledgedRun[] = []
  for (const { run, source, name, targets, groups, stuckRows } of parts) {
    const request = { run, targets, groups, stuckRows, undo, dryRun, actor, because: reason }
    const result = await extension.acknowledge(request)
    if (result.targets > 0 || result.isRunChanged) changed.push({ run, source, name, ...result })
  }
  return changed
}
