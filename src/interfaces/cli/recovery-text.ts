import { shortId, type RunId } from '../../core/model/id.ts'
import type { Millis } from '../../core/model/time.ts'
import { sayJudged, type Verdict } from '../../core/model/verdict.ts'
import type { JudgedRun } from '../../core/recovery/assess.ts'
import type { Sorted } from '../../presenters/recovery.ts'
import { revertibleRuns } from '../../presenters/undo.ts'
import { LINES_MAX, printFirst, printLeftOut, ROWS_MAX } from '../../lib/terminal/long-lists.ts'
import type { Paper } from '../../lib/terminal/text-writer.ts'
import {
  age,
  ago,
  doneOfTotal,
  plural,
  runStatus,
  sourceOf,
  whoCell,
} from '../../presenters/format.ts'
import { groupVerdicts } from './verdict-groups.ts'

/** Every active run, then the verdicts: what would be done, or was. */
export function printPlan(
  paper: Paper,
  { active, deeds, theirs, away }: Sorted,
  now: Millis,
  isDone = false,
): void {
  for (const { table, because } of away)
    paper.say({ text: `Not all can be seen: ${table} cannot be read. `, ink: 'warn' }, because)
  printActive(paper, active, now)
  paper.heading(isDone ? 'What was done' : 'What would be done')
  if (deeds.length === 0)
    paper.say(theirs.length > 0 ? 'Nothing by itself.' : 'Nothing to recover.')
  printVerdicts(paper, deeds, isDone)
  if (isDone) printUndo(paper, deeds)
  if (theirs.length === 0) return
  paper.heading('Left to you')
  printVerdicts(paper, theirs)
  if (theirs.some(({ action, cannot }) => action === 'abandon' && cannot === undefined))
    paper.say('`unstuck clean` marks what is dead.')
}

/** After a person agreed to the plan. */
export function printDone(paper: Paper, { deeds }: Sorted): void {
  const done = deeds.filter(({ applied }) => applied)
  paper.blank()
  if (done.length === 0) paper.say('Nothing was changed.')
  else paper.line({ text: 'What was done', ink: 'strong' })
  printVerdicts(paper, done, true)
  printUndo(paper, deeds)
}

function printActive(paper: Paper, active: readonly JudgedRun[], now: Millis): void {
  if (active.length === 0) return paper.say('No run is active.')
  paper.say(`${plural(active.length, 'active run')}:`)
  paper.table(
    [
      { head: 'RUN' },
      { head: 'SOURCE', flex: true },
      { head: 'STATUS' },
      { head: 'DONE', align: 'right' },
      { head: 'AGE', align: 'right', optional: 2 },
      { head: 'OWNER', flex: true, optional: 3 },
      { head: 'LAST SIGN', align: 'right', optional: 1 },
    ],
    active
      .slice(0, ROWS_MAX)
      .map(({ run, owner, evidence }) => [
        shortId(run.id),
        sourceOf(run),
        runStatus(run.status),
        doneOfTotal(run),
        age(evidence.ageMs),
        owner ? whoCell(owner.evidence) : 'nobody',
        ago(owner ? now - owner.evidence.beatAgeMs : run.lastActivityAt, now),
      ]),
  )
  printLeftOut(paper, active.length - ROWS_MAX, '`unstuck runs` lists them')
}

const EXAMPLES = 3

/** One line for each, or where they are many one for each group of them. */
function printVerdicts(paper: Paper, verdicts: readonly Verdict[], isDone = false): void {
  const isLate = ({ applied }: Verdict): boolean => isDone && !applied
  if (verdicts.length <= LINES_MAX) {
    for (const verdict of verdicts) printVerdict(paper, verdict, isLate(verdict))
    return
  }
  const groups = groupVerdicts(verdicts)
  for (const { first, all } of groups.slice(0, LINES_MAX)) {
    if (all.length === 1) printVerdict(paper, first, isLate(first))
    else printGroup(paper, first, all, isLate(first))
  }
  const left = groups.slice(LINES_MAX).reduce((sum, { all }) => sum + all.length, 0)
  const where = isDone ? '`unstuck history`' : '`--json`'
  printLeftOut(paper, left, `${where} has each of the ${verdicts.length}`)
}

function printGroup(paper: Paper, first: Verdict, all: readonly Verdict[], isLate: boolean): void {
  const { action, source, target, row } = first
  const many = plural(all.length, target === null || row ? 'run' : 'target')
  const ids = all
    .slice(0, EXAMPLES)
    .map(({ target, run, row }) => shortId(row ? run : (target ?? run)))
  paper.say(
    '- ',
    { text: action, ink: 'strong' },
    ` ${many} of ${source}${moveOf(first)}${reasonOf(first, isLate)}`,
  )
  paper.say({ text: `  For example ${ids.join(', ')}.`, ink: 'dim' })
}

function printVerdict(paper: Paper, verdict: Verdict, isLate = false): void {
  const text = ` ${sayJudged(verdict)}${moveOf(verdict)}${reasonOf(verdict, isLate)}`
  paper.say('- ', { text: verdict.action, ink: 'strong' }, text)
}

function reasonOf({ because, cannot }: Verdict, isLate: boolean): string {
  const late = isLate ? ' (not applied)' : ''
  const why = cannot === undefined ? '' : ` ${cannot}.`
  return `: ${because}${late}.${why}`
}

/** ` (in progress → planned)`. What a user's own row becomes has a word of their own. */
function moveOf({ action, from, to, row }: Verdict): string {
  const also = action === 'retry' ? ', and a new run is queued' : ''
  return from === to || row ? '' : ` (${from.replace('_', ' ')} → ${to}${also})`
}

function printUndo(paper: Paper, deeds: readonly Verdict[]): void {
  const undo = (run: RunId): void => paper.say(`Undo: \`unstuck revert ${shortId(run)}\``)
  printFirst(paper, revertibleRuns(deeds), undo, '`unstuck history` lists what can be undone')
  const late = deeds.filter(({ applied }) => !applied)
  if (late.length === 0) return
  const isTheirs = late.some(({ row, evidence }) => row !== undefined || 'who' in evidence)
  const or = isTheirs ? ', or your database did not take it, as the log then says' : ''
  paper.say(`${plural(late.length, 'verdict')} not applied: somebody was faster${or}.`)
}
