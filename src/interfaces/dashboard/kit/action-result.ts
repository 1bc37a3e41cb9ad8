import type { InferOutput } from 'valibot'
import type * as answers from '../../../presenters/schema/results.ts'
import type { Cleaning, Done, JudgedRun, Recovery, Undo, Verdict } from '../shapes.ts'
import { counted, rowWords, shortId } from '../model/format.ts'
import { rowIn } from './evidence.ts'

/** One thing that an action would do, or did. */
export type Deed = {
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
export type Account = {
  readonly isDone: boolean
  /** Goes back with the deed, which is refused when it would now be another. */
  readonly plan: string | null
  /** How many things it is about; exact, also where only some are listed. */
  readonly count: number
  readonly said: string
  /** Of many the first; `cut`: how many more there are. */
  readonly deeds: readonly Deed[]
  /** What it leaves to a person; of many the first. */
  readonly left: readonly Deed[]
  readonly cut: { readonly deeds: number; readonly left: number }
  /** The same on the command line; empty where there is none. */
  readonly command: string
  readonly undo: Undo | null
}

const NONE_CUT = { deeds: 0, left: 0 }

export function accountOfRecovery(answer: Recovery): Account {
  const { verdicts, dryRun, deeds: count, applied } = answer
  // What it does comes first; the rest is a person's to decide.
  const [deeds, left] = [verdicts.slice(0, count), verdicts.slice(count)]
  const rows = rowsIn(answer.active)
  return {
    isDone: !dryRun,
    plan: answer.plan,
    count: dryRun ? count : applied,
    said: dryRun
      ? count === 0
        ? 'There is nothing to recover.'
        : `${counted(count, 'thing')} would be done.`
      : `${counted(applied, 'thing')} ${applied === 1 ? 'was' : 'were'} done.${lateWords(count - applied)}`,
    deeds: deeds.map((verdict) => deedOf(verdict, dryRun, rows)),
    left: left.map((one) => deedOf(one, true, rows)),
    cut: { deeds: count - deeds.length, left: answer.total - count - left.length },
    command: answer.command,
    undo: answer.undo,
  }
}

export function accountOfCleaning(answer: Cleaning): Account {
  const { dead, resumable, cleaned, dryRun, plan, command } = answer
  const applied = cleaned.filter((verdict) => verdict.applied).length
  const count = dryRun ? dead.length : applied
  const runs = counted(count, dryRun ? 'dead run' : 'run')
  const rows = rowsIn([...answer.active, ...resumable, ...dead])
  const marked = (dryRun ? dead.map(({ id }) => id) : cleaned.map(({ run }) => run)).every((id) =>
    rows.has(id),
  )
    ? `marked${count === 1 ? '' : ', each'} with the word that its table has for it`
    : 'marked as “Timeout – auto-cleaned”'
  return {
    isDone: !dryRun,
    plan,
    count,
    said: dryRun
      ? count === 0
        ? 'No run is dead.'
        : `${runs} would be ${marked}. Nothing is deleted.`
      : `${runs} ${count === 1 ? 'is' : 'are'} ${marked}.${lateWords(cleaned.length - applied)}`,
    deeds: dryRun ? dead.map(deedOfDead) : cleaned.map((verdict) => deedOf(verdict, false, rows)),
    left: dryRun ? resumable.map(deedOfKept) : [],
    cut: NONE_CUT,
    command,
    undo: answer.undo,
  }
}

/** An action on one run, or on targets of it: a sentence says it all. `about`: what it needs at least one of. */
export function accountOfDone(answer: Done, about: 'run' | 'targets'): Account {
  const { targets, said, dryRun, undo, command } = answer
  return {
    isDone: !dryRun,
    plan: null,
    count: about === 'run' ? Math.max(1, targets) : targets,
    // The dialog itself says that this is a preview.
    said: dryRun ? said.replace(/\s*Nothing was changed\./, '') : said,
    deeds: [],
    left: [],
    cut: NONE_CUT,
    command,
    undo,
  }
}

export type Deletion = InferOutput<typeof answers.deletion>

export function accountOfDeletion(answer: Deletion): Account {
  const { run, source, targets, items, failures, dryRun, command } = answer
  const what = `Run ${shortId(run)} of ${source} with ${counted(targets, 'target')} and ${counted(items, 'item')}`
  return {
    isDone: !dryRun,
    plan: null,
    count: 1,
    said: dryRun
      ? `${what} would be deleted for good.`
      : [`${what} is deleted.`, ...failures].join(' '),
    deeds: [],
    left: [],
    cut: NONE_CUT,
    command,
    undo: null,
  }
}

export type RetriedLetters = InferOutput<typeof answers.retriedLetters>

export function accountOfRetried(answer: RetriedLetters): Account {
  const { targets, left, runs, dryRun, plan, undo } = answer
  const refused = runs.filter((one) => one.refused !== null).length
  const where = `in ${counted(runs.length - refused, 'run')}`
  const more =
    left > 0
      ? ` ${counted(left, 'more target')} ${left === 1 ? 'is' : 'are'} left for another time.`
      : ''
  return {
    isDone: !dryRun,
    plan,
    count: targets,
    said: dryRun
      ? `${counted(targets, 'target')} ${where} would be put back in line, each from its last saved page.${more}`
      : `${counted(targets, 'target')} ${where} ${targets === 1 ? 'is' : 'are'} back in line.${refused > 0 ? ` ${counted(refused, 'run')} refused.` : ''}${more}`,
    deeds: runs.map((one) => ({
      id: one.run,
      action: 'retry',
      what: `${counted(one.targets, 'target')} of run ${shortId(one.run)}`,
      page: `/runs/${one.run}`,
      from: null,
      to: null,
      because: one.refused ?? '',
      evidence: null,
      outcome: one.refused !== null ? 'late' : dryRun ? 'planned' : 'done',
    })),
    left: [],
    cut: NONE_CUT,
    // The command line retries run by run.
    command: '',
    undo,
  }
}

/** What is different between the preview that was agreed to and the one of now, in a sentence. */
export function differenceOf(shown: Account, now: Account): string {
  const before = new Map(shown.deeds.map((deed) => [deed.id, deed]))
  const after = new Map(now.deeds.map((deed) => [deed.id, deed]))
  const added = now.deeds.filter(({ id }) => !before.has(id)).length
  const gone = shown.deeds.filter(({ id }) => !after.has(id)).length
  const other = now.deeds.filter(({ id, action, from, to }) => {
    const old = before.get(id)
    return old && (old.action !== action || old.from !== from || old.to !== to)
  }).length
  const said = [
    added > 0 ? `${added} came in` : null,
    gone > 0 ? `${gone} no longer ${gone === 1 ? 'needs' : 'need'} it` : null,
    other > 0 ? `${other} would now be judged differently` : null,
  ].filter((one) => one !== null)
  const isWhole = shown.cut.deeds === 0 && now.cut.deeds === 0
  if (isWhole && said.length > 0) return `${said.join(', ')}.`
  return shown.count === now.count
    ? 'Something about it changed.'
    : `It was about ${shown.count}, and is about ${now.count} now.`
}

type Rows = ReadonlyMap<string, NonNullable<JudgedRun['adopted']>>

/** Runs that are rows of tables of the user's own; a whole table is told by its source. */
function rowsIn(runs: readonly JudgedRun[]): Rows {
  return new Map(
    runs.flatMap(({ id, adopted }) => (adopted && adopted.key !== '' ? [[id, adopted]] : [])),
  )
}

function deedOf(verdict: Verdict, isPreview: boolean, rows: Rows): Deed {
  const { run, source, target, action, because, evidence, from, to, applied, cannot } = verdict
  const row = rows.get(run)
  // A row that is a run has a target in the books only: the run is what people know.
  const isOfRun = target === null || row !== undefined
  return {
    id: target ?? run,
    action,
    what: row
      ? whatOf(source, row)
      : isOfRun
        ? `run ${shortId(run)} of ${source}`
        : (rowIn(evidence) ?? `target ${shortId(target)} of ${source}`),
    page: isOfRun ? `/runs/${run}` : `/targets/${target}`,
    ...(row ? NO_MOVE : { from, to }),
    because: withCannot(because, cannot),
    evidence,
    outcome: isPreview ? 'planned' : applied ? 'done' : 'late',
  }
}

/** Which word a row gets is its table's affair. */
const NO_MOVE = { from: null, to: null }

/** `row 7 of jobs, shop` */
function whatOf(source: string, row: NonNullable<JudgedRun['adopted']>): string {
  return source === row.table ? rowWords(row) : `${rowWords(row)}, ${source}`
}

function deedOfDead(run: JudgedRun): Deed {
  return { ...deedOfKept(run), action: 'abandon', ...(!run.adopted && { to: 'abandoned' }) }
}

function deedOfKept(run: JudgedRun): Deed {
  const { id, source, action, status, because, cannot, evidence, adopted } = run
  return {
    id,
    action,
    because: withCannot(because, cannot),
    evidence,
    what: adopted ? whatOf(source, adopted) : `run ${shortId(id)} of ${source}`,
    page: `/runs/${id}`,
    from: status,
    to: status,
    outcome: 'planned',
  }
}

/** The reason, and why it cannot be done to a row of a table of the user's own. */
function withCannot(because: string, cannot: string | null): string {
  return cannot === null ? because : `${because}. ${cannot}`
}

function lateWords(late: number): string {
  return late === 0 ? '' : ` ${late} left alone: changed meanwhile.`
}
