import type { InferOutput } from 'valibot'
import type * as answers from '../../../presenters/schema/results.ts'
import type {
  ActionResponse,
  AllowedAction,
  AssessedRun,
  Cleaning,
  Recovery,
  Undo,
  Verdict,
} from '../shapes.ts'
import { plural, formatRow, shortId } from '../model/format.ts'
import { rowOfEvidence } from './evidence.ts'

/** One thing that an action would do, or did. */
export type ActionChange = {
  readonly id: string
  readonly action: string
  /** `target 91bc4f2a of shop` */
  readonly what: string
  /** Where to look at it. */
  readonly page: string | null
  /** Statuses; alike, or null, where none changes. */
  readonly from: string | null
  readonly to: string | null
  readonly because: string
  readonly evidence: unknown
  /** `late`: it was no longer what had been judged, so it was left alone. */
  readonly outcome: 'planned' | 'done' | 'late'
}

/** What an action would do (`isDone` false) or did: the same questions are asked before and after. */
export type ActionResult = {
  readonly isDone: boolean
  /** Goes back with the deed, which is refused when it would now be another. */
  readonly plan: string | null
  /** How many things it is about; exact, also where only some are listed. */
  readonly count: number
  readonly summary: string
  /** Of many the first; `cut`: how many more there are. */
  readonly changes: readonly ActionChange[]
  /** What it leaves to a person; of many the first. */
  readonly needsAttention: readonly ActionChange[]
  readonly omitted: { readonly changes: number; readonly needsAttention: number }
  /** The same on the command line; empty where there is none. */
  readonly command: string
  readonly undo: Undo | null
}

/** The answer to a call of an action, whichever it is. */
export function resultOf({ name }: Pick<AllowedAction, 'name'>, answer: unknown): ActionResult {
  switch (name) {
    case 'recover':
      return resultOfRecovery(answer as Recovery)
    case 'clean':
      return resultOfCleaning(answer as Cleaning)
    case 'delete':
      return resultOfDeletion(answer as Deletion)
    case 'retry-dead-letters':
      return resultOfDeadLetterRetry(answer as DeadLetterRetry)
    default:
      return resultOfAction(answer as ActionResponse)
  }
}

const NONE_OMITTED = { changes: 0, needsAttention: 0 }

export function resultOfRecovery(response: Recovery): ActionResult {
  const { verdicts, dryRun, planned: count, applied } = response
  // What it does comes first; the rest is a person's to decide.
  const [deeds, left] = [verdicts.slice(0, count), verdicts.slice(count)]
  const rows = adoptedRowsOf(response.active)
  return {
    isDone: !dryRun,
    plan: response.plan,
    count: dryRun ? count : applied,
    summary: dryRun
      ? count === 0
        ? 'There is nothing to recover.'
        : `${plural(count, 'thing')} would be done.`
      : `${plural(applied, 'thing')} ${applied === 1 ? 'was' : 'were'} done.${describeLate(count - applied)}`,
    changes: deeds.map((verdict) => changeOfVerdict(verdict, dryRun, rows)),
    needsAttention: left.map((one) => changeOfVerdict(one, true, rows)),
    omitted: {
      changes: count - deeds.length,
      needsAttention: response.total - count - left.length,
    },
    command: response.command,
    undo: response.undo,
  }
}

export function resultOfCleaning(response: Cleaning): ActionResult {
  const { dead, resumable, cleaned, dryRun, plan, command } = response
  const applied = cleaned.filter((verdict) => verdict.applied).length
  const count = dryRun ? dead.length : applied
  const runs = plural(count, dryRun ? 'dead run' : 'run')
  const rows = adoptedRowsOf([...response.active, ...resumable, ...dead])
  const marked = (dryRun ? dead.map(({ id }) => id) : cleaned.map(({ run }) => run)).every((id) =>
    rows.has(id),
  )
    ? `marked${count === 1 ? '' : ', each'} with the word that its table has for it`
    : 'marked as “Timeout – auto-cleaned”'
  return {
    isDone: !dryRun,
    plan,
    count,
    summary: dryRun
      ? count === 0
        ? 'No run is dead.'
        : `${runs} would be ${marked}. Nothing is deleted.`
      : `${runs} ${count === 1 ? 'is' : 'are'} ${marked}.${describeLate(cleaned.length - applied)}`,
    changes: dryRun
      ? dead.map(changeOfDeadRun)
      : cleaned.map((verdict) => changeOfVerdict(verdict, false, rows)),
    needsAttention: dryRun ? resumable.map(changeOfKeptRun) : [],
    omitted: NONE_OMITTED,
    command,
    undo: response.undo,
  }
}

/** An action on one run, or on targets of it. */
export function resultOfAction(response: ActionResponse): ActionResult {
  const { count, sections, dryRun, undo, command } = response
  const summary = sections.flatMap(({ sentences }) => sentences).join(' ')
  return {
    isDone: !dryRun,
    plan: null,
    count,
    // The dialog itself says that this is a preview.
    summary: dryRun ? summary.replace(/\s*Nothing was changed\./, '') : summary,
    changes: [],
    needsAttention: [],
    omitted: NONE_OMITTED,
    command,
    undo,
  }
}

export type Deletion = InferOutput<typeof answers.deletion>

export function resultOfDeletion(response: Deletion): ActionResult {
  const { run, source, targets, items, failures, dryRun, command } = response
  const what = `Run ${shortId(run)} of ${source} with ${plural(targets, 'target')} and ${plural(items, 'item')}`
  return {
    isDone: !dryRun,
    plan: null,
    count: 1,
    summary: dryRun
      ? `${what} would be deleted for good.`
      : [`${what} is deleted.`, ...failures].join(' '),
    changes: [],
    needsAttention: [],
    omitted: NONE_OMITTED,
    command,
    undo: null,
  }
}

export type DeadLetterRetry = InferOutput<typeof answers.deadLetterRetry>

export function resultOfDeadLetterRetry(response: DeadLetterRetry): ActionResult {
  const { targets, left, runs, dryRun, plan, undo } = response
  const refused = runs.filter((one) => one.refused !== null).length
  const where = `in ${plural(runs.length - refused, 'run')}`
  const more =
    left > 0
      ? ` ${plural(left, 'more target')} ${left === 1 ? 'is' : 'are'} left for another time.`
      : ''
  return {
    isDone: !dryRun,
    plan,
    count: targets,
    summary: dryRun
      ? `${plural(targets, 'target')} ${where} would be put back in line, each from its last saved page.${more}`
      : `${plural(targets, 'target')} ${where} ${targets === 1 ? 'is' : 'are'} back in line.${refused > 0 ? ` ${plural(refused, 'run')} refused.` : ''}${more}`,
    changes: runs.map((one) => ({
      id: one.run,
      action: 'retry',
      what: `${plural(one.targets, 'target')} of run ${shortId(one.run)}`,
      page: `/runs/${one.run}`,
      from: null,
      to: null,
      because: one.refused ?? '',
      evidence: null,
      outcome: one.refused !== null ? 'late' : dryRun ? 'planned' : 'done',
    })),
    needsAttention: [],
    omitted: NONE_OMITTED,
    // The command line retries run by run.
    command: '',
    undo,
  }
}

/** What is different between the preview that was agreed to and the one of now, in a sentence. */
export function describeDifference(shown: ActionResult, now: ActionResult): string {
  const before = new Map(shown.changes.map((deed) => [deed.id, deed]))
  const after = new Map(now.changes.map((deed) => [deed.id, deed]))
  const added = now.changes.filter(({ id }) => !before.has(id)).length
  const gone = shown.changes.filter(({ id }) => !after.has(id)).length
  const other = now.changes.filter(({ id, action, from, to }) => {
    const old = before.get(id)
    return old && (old.action !== action || old.from !== from || old.to !== to)
  }).length
  const said = [
    added > 0 ? `${added} came in` : null,
    gone > 0 ? `${gone} no longer ${gone === 1 ? 'needs' : 'need'} it` : null,
    other > 0 ? `${other} would now be judged differently` : null,
  ].filter((one) => one !== null)
  const isWhole = shown.omitted.changes === 0 && now.omitted.changes === 0
  if (isWhole && said.length > 0) return `${said.join(', ')}.`
  return shown.count === now.count
    ? 'Something about it changed.'
    : `It was about ${shown.count}, and is about ${now.count} now.`
}

type AdoptedRows = ReadonlyMap<string, NonNullable<AssessedRun['adopted']>>

/** Runs that are rows of tables of the user's own; a whole table is told by its source. */
function adoptedRowsOf(runs: readonly AssessedRun[]): AdoptedRows {
  return new Map(
    runs.flatMap(({ id, adopted }) => (adopted && adopted.key !== '' ? [[id, adopted]] : [])),
  )
}

function changeOfVerdict(verdict: Verdict, isPreview: boolean, rows: AdoptedRows): ActionChange {
  const { run, source, target, action, because, evidence, from, to, applied, blockedBy } = verdict
  const row = rows.get(run)
  // A row that is a run has a target in the books only: the run is what people know.
  const isOfRun = target === null || row !== undefined
  return {
    id: target ?? run,
    action,
    what: row
      ? describeRow(source, row)
      : isOfRun
        ? `run ${shortId(run)} of ${source}`
        : (rowOfEvidence(evidence) ?? `target ${shortId(target)} of ${source}`),
    page: isOfRun ? `/runs/${run}` : `/targets/${target}`,
    ...(row ? NO_MOVE : { from, to }),
    because: withBlockedBy(because, blockedBy),
    evidence,
    outcome: isPreview ? 'planned' : applied ? 'done' : 'late',
  }
}

/** Which word a row gets is its table's affair. */
const NO_MOVE = { from: null, to: null }

/** `row 7 of jobs, shop` */
function describeRow(source: string, row: NonNullable<AssessedRun['adopted']>): string {
  return source === row.table ? formatRow(row) : `${formatRow(row)}, ${source}`
}

function changeOfDeadRun(run: AssessedRun): ActionChange {
  return { ...changeOfKeptRun(run), action: 'abandon', ...(!run.adopted && { to: 'abandoned' }) }
}

function changeOfKeptRun(run: AssessedRun): ActionChange {
  const { id, source, action, status, because, blockedBy, evidence, adopted } = run
  return {
    id,
    action,
    because: withBlockedBy(because, blockedBy),
    evidence,
    what: adopted ? describeRow(source, adopted) : `run ${shortId(id)} of ${source}`,
    page: `/runs/${id}`,
    from: status,
    to: status,
    outcome: 'planned',
  }
}

/** The reason, and why it cannot be done to a row of a table of the user's own. */
function withBlockedBy(because: string, blockedBy: string | null): string {
  return blockedBy === null ? because : `${because}. ${blockedBy}`
}

function describeLate(late: number): string {
  return late === 0 ? '' : ` ${late} left alone: changed meanwhile.`
}
