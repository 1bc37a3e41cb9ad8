import { runName } from '../core/model/traits.ts'
import { refuseAcknowledge, refuseAcknowledgeTarget, type Refusal } from '../operator/refusals.ts'
import { unknownRun } from '../core/model/errors.ts'
import { shortId, type RunId } from '../core/model/id.ts'
import { isLive, type Run } from '../core/model/run.ts'
import { DEAD_LETTER_STATUSES, type Target } from '../core/model/target.ts'
import { assess, isStuckRow, type Assessment } from '../core/recovery/assess.ts'
import type { ActionContext, OperatorContext } from '../core/recovery/context.ts'
import { LATEST_FAILED_MAX } from '../core/store/reads.ts'
import type { Store } from '../core/store/store.ts'
import {
  ACKNOWLEDGE_STORE,
  type AcknowledgeRequest,
  type AcknowledgeResult,
} from '../features/acknowledge/store/store.ts'
import { firstSentences, plainText } from '../lib/text/sentence.ts'
import { unstuckCommand } from '../lib/text/shell-command.ts'
import { countAcknowledged, countDeadLetters, loadAcknowledged } from './acknowledged.ts'
import { makeResult, NOTHING_CHANGED, TARGETS_MAX, type ActionResult } from './action-result.ts'
import { selectDeadLetters } from './dead-letter-replan.ts'
import type { DeadLetterSelection } from './dead-letters.ts'
import { plural, targetRef } from './format.ts'
import type { Undo } from './results.ts'
import { isStuck } from './stuck-rows.ts'

/** Acknowledging what failed, is stuck or parked, for all interfaces. */

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

export type AcknowledgedRun = AcknowledgeResult & {
  readonly run: RunId
  readonly source: string
  /** As commands take it. */
  readonly name: string
}
export type AcknowledgeActionResult = ActionResult & {
  /** What was changed of each run. */
  readonly items: readonly AcknowledgedRun[]
}

/** Sets or removes the mark. Throws the refusal if nothing of the selection can be acknowledged. */
export async function acknowledge(
  context: OperatorContext,
  { runs, targets = [], groups }: AcknowledgeSelection,
  options: AcknowledgeOptions,
): Promise<AcknowledgeActionResult> {
  const { store } = context
  const owners = new Map<RunId, Run>()
  for (const id of new Set(targets.map(({ run }) => run))) {
    const owner = await store.run(id)
    if (!owner) throw unknownRun(id)
    owners.set(id, owner)
  }
  const ofRuns = new Map<Run, Refusal>()
  const assessment = await assessRows(context, runs)
  for (const run of runs) ofRuns.set(run, refuseAcknowledge(run, isStuckRun(run, assessment)))
  const refusals = [
    ...ofRuns.values(),
    ...targets.map((target) => refuseAcknowledgeTarget(target, owners.get(target.run)!)),
  ]
  const refusal = refusals.find((one) => one !== null)
  if (refusal && refusals.every((one) => one !== null)) throw refusal
  const accepted = runs.filter((run) => ofRuns.get(run) === null)
  const undo = options.dryRun
    ? null
    : undoCalls(await findChanged(store, accepted, { targets, groups }, options), options)
  const items: AcknowledgedRun[] = []
  for (const run of accepted) {
    const stuckRows = options.undo ? undefined : findStuckRows(run, assessment)
    items.push(await mark(context, run, { groups, stuckRows }, options))
  }
  for (const [run, own] of Map.groupBy(targets, (target) => target.run))
    items.push(await mark(context, owners.get(run)!, { targets: own.map(({ id }) => id) }, options))
  const one = new Set([...runs.map(({ id }) => id), ...owners.keys()])
  return toResult(
    items.filter((item) => item.targets > 0 || item.isRunChanged),
    {
      run: one.size === 1 ? await store.run([...one][0]!) : null,
      options,
      undo,
      command: commandFor(accepted, targets, groups, options),
    },
  )
}

/** Assesses stuck rows of tables of your own, all at once: that reads every worker. Null if none is selected. */
async function assessRows(
  context: OperatorContext,
  runs: readonly Run[],
): Promise<Assessment | null> {
  const isRow = ({ traits, status }: Run): boolean => traits.origin !== null && isLive(status)
  return runs.some(isRow) ? assess(context) : null
}

/** A live row of a table of your own is acknowledged if it is stuck. */
function isStuckRun({ id, traits }: Run, assessment: Assessment | null): boolean {
  const found = assessment?.runs.find(({ run }) => run.id === id)
  return traits.origin !== null && found !== undefined && isStuck(found)
}

/** Returns the workers of stuck rows of a table of your own, each with the hash of its row. */
function findStuckRows(
  { id, kind, traits }: Run,
  assessment: Assessment | null,
): AcknowledgeRequest['stuckRows'] {
  if (traits.origin === null || kind === 'single' || assessment === null) return undefined
  const stuck = assessment.workers.filter((one) => one.runs.has(id) && isStuckRow(one))
  return new Map(stuck.map(({ worker, evidence }) => [worker.id, evidence.rowHash]))
}

async function mark(
  { store, actor }: ActionContext,
  one: Pick<Run, 'id' | 'source'> & Partial<Pick<Run, 'traits'>>,
  chosen: Pick<AcknowledgeRequest, 'targets' | 'groups' | 'stuckRows'>,
  { undo, dryRun, because }: AcknowledgeOptions,
): Promise<AcknowledgedRun> {
  const extension = await store.extend(ACKNOWLEDGE_STORE)
  const run = one.id
  const why = because ?? `${undo ? 'acknowledgement undone' : 'acknowledged'} by ${actor}`
  const request = { run, ...chosen, undo, dryRun, actor, because: why }
  return {
    run,
    source: one.source,
    name: one.traits ? runName({ ...one, traits: one.traits }) : shortId(run),
    ...(await extension.acknowledge(request)),
  }
}

function toResult(
  items: readonly AcknowledgedRun[],
  {
    run,
    options,
    ...done
  }: Pick<ActionResult, 'undo' | 'command' | 'run'> & { options: AcknowledgeOptions },
): AcknowledgeActionResult {
  const { undo, dryRun } = options
  const isNothing = items.length === 0
  const lines = items.map((item) => [describe(item, options)])
  const sentences = isNothing
    ? [undo ? 'Nothing of it is acknowledged.' : 'Nothing of it is left to acknowledge.']
    : firstSentences(lines, '`--json` has each run').map(plainText)
  return makeResult(dryRun, {
    run,
    isOnRun: !isNothing,
    targets: items.reduce((sum, { targets }) => sum + targets, 0),
    items,
    sentences: isNothing && !dryRun ? [...sentences, NOTHING_CHANGED] : sentences,
    ...done,
    undo: isNothing ? null : done.undo,
  })
}

/** `Run 4f2a91bc of shop is acknowledged, with 3 targets: it no longer counts as needing attention.` */
function describe(
  { name: id, source, targets, isRunChanged }: AcknowledgedRun,
  { undo, dryRun }: AcknowledgeOptions,
): string {
  const name = `run ${id} of ${source}`
  const some = plural(targets, 'target')
  const what = isRunChanged
    ? `Run ${id} of ${source}${targets > 0 ? `, with ${some},` : ''}`
    : `${some} of ${name}`
  const isOne = isRunChanged || targets === 1
  const be = dryRun ? 'would be' : isOne ? 'is' : 'are'
  if (!undo) return `${what} ${be} acknowledged: kept, and no longer counted as needing attention.`
  const count = dryRun ? 'would count' : isOne ? 'counts' : 'count'
  return `${what} ${count} as needing attention again.`
}

/** What an action changes: runs as a whole, and single targets. */
type Changed = { readonly runs: readonly Run[]; readonly targets: readonly NamedTarget[] }
type NamedTarget = Pick<Target, 'id' | 'origin'>

/** Returns what will be changed, so that its undo leaves alone what was marked before; null if that is too much to list. */
async function findChanged(
  store: Store,
  runs: readonly Run[],
  { targets, groups }: { targets: readonly Target[]; groups: readonly string[] | undefined },
  { undo }: AcknowledgeOptions,
): Promise<Changed | null> {
  const acknowledged = await loadAcknowledged(store, runs)
  const isMeant = ({ acknowledgedAt, group }: Target): boolean =>
    (acknowledgedAt !== null) === undo && (!groups || groups.includes(group ?? ''))
  const changed: { runs: Run[]; targets: Target[] } = { runs: [], targets: [] }
  changed.targets.push(...targets.filter(isMeant))
  for (const run of runs) {
    const marked = countAcknowledged(run, acknowledged)
    if (!groups && marked === (undo ? countDeadLetters(run) : 0)) {
      changed.runs.push(run)
      continue
    }
    const filter = { statuses: DEAD_LETTER_STATUSES, limit: TARGETS_MAX }
    const { items, next } = await store.targets(run.id, filter)
    if (next !== null) return null
    changed.targets.push(...items.filter(isMeant))
  }
  return changed
}

/** The same call the other way round; null if there is too much for one, or only the mark of a run has changed. */
function undoCalls(changed: Changed | null, { undo }: AcknowledgeOptions): Undo | null {
  const { runs, targets } = changed ?? { runs: [], targets: [] }
  const most = Math.max(runs.length, targets.length)
  if (most === 0 || most > TARGETS_MAX) return null
  const body = {
    ...(runs.length > 0 && { runs: runs.map(({ id }) => id) }),
    ...(targets.length > 0 && { targets: targets.map(({ id }) => id) }),
    ...(!undo && { undo: true }),
  }
  return {
    label: undo ? 'Acknowledge again' : 'Undo',
    calls: [{ method: 'POST', path: '/api/acknowledge', body }],
    command: unstuckCommand('acknowledge', namesOf(runs, targets), { undo: !undo }),
  }
}

function commandFor(
  runs: readonly Run[],
  targets: readonly Target[],
  group: readonly string[] | undefined,
  { undo, because }: Pick<AcknowledgeOptions, 'undo' | 'because'>,
): string {
  return unstuckCommand('acknowledge', namesOf(runs, targets), { undo, group, because })
}

function namesOf(runs: readonly Run[], targets: readonly NamedTarget[]): string[] {
  return [...runs.map(runName), ...targets.map(targetRef)]
}

/** Returns the runs that have something to acknowledge, or to undo: of a source, or of all. */
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

const RUNS_MAX = 500

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

/** Acknowledges the dead letters of a group or a source, or undoes it. */
export async function acknowledgeDeadLetters(
  context: ActionContext,
  selection: Omit<DeadLetterSelection, 'acknowledged'>,
  options: AcknowledgeOptions,
  signal: AbortSignal,
): Promise<ActionResult> {
  const which = { ...selection, acknowledged: options.undo }
  const { letters, left } = await selectDeadLetters(context.store, which, signal)
  const items: AcknowledgedRun[] = []
  for (const [id, own] of Map.groupBy(letters, ({ run }) => run)) {
    const targets = own.map((letter) => letter.id)
    items.push(await mark(context, { id, source: own[0]!.source }, { targets }, options))
  }
  const undo = undoCalls({ runs: [], targets: letters }, options)
  const result = toResult(
    items.filter(({ targets }) => targets > 0),
    { run: null, options, undo, command: '' },
  )
  if (left === 0) return result
  const more = `${plural(left, 'more target')} left for another call.`
  return { ...result, sentences: [...result.sentences, more] }
}
