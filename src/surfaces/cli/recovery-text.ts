import { shortId } from '../../model/id.ts'
import type { Millis } from '../../model/time.ts'
import { sayJudged, type Verdict } from '../../model/verdict.ts'
import type { JudgedRun } from '../../runtime/judgement.ts'
import type { Sorted } from '../answers/recovery.ts'
import { revertibleRuns } from '../answers/undo.ts'
import type { Paper } from './paper/paper.ts'
import { age, ago, doneOfTotal, plural, runStatus, sourceOf, whoCell } from './paper/words.ts'

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
  for (const verdict of deeds) printVerdict(paper, verdict, isDone && !verdict.applied)
  if (isDone) printUndo(paper, deeds)
  if (theirs.length === 0) return
  paper.heading('Left to you')
  for (const verdict of theirs) printVerdict(paper, verdict)
  if (theirs.some(({ action, cannot }) => action === 'abandon' && cannot === undefined))
    paper.say('`unstuck clean` marks what is dead.')
}

/** After a person agreed to the plan. */
export function printDone(paper: Paper, { deeds }: Sorted): void {
  const done = deeds.filter(({ applied }) => applied)
  paper.blank()
  if (done.length === 0) paper.say('Nothing was changed.')
  else paper.line({ text: 'What was done', ink: 'strong' })
  for (const verdict of done) paper.say(`- ${verdict.action} ${what(verdict)}.`)
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
    active.map(({ run, owner, evidence }) => [
      shortId(run.id),
      sourceOf(run),
      runStatus(run.status),
      doneOfTotal(run),
      age(evidence.ageMs),
      owner ? whoCell(owner.evidence) : 'nobody',
      ago(owner ? now - owner.evidence.beatAgeMs : run.lastActivityAt, now),
    ]),
  )
}

function printVerdict(paper: Paper, verdict: Verdict, isLate = false): void {
  const { action, because, cannot } = verdict
  const late = isLate ? ' (not applied)' : ''
  const why = cannot === undefined ? '' : ` ${cannot}.`
  paper.say('- ', { text: action, ink: 'strong' }, ` ${what(verdict)}: ${because}${late}.${why}`)
}

/** `target 91bc4f2a of shop (in progress → planned)`. What a user's own row becomes has a word of their own. */
function what(verdict: Verdict): string {
  const { action, from, to, row } = verdict
  const also = action === 'retry' ? ', and a new run is queued' : ''
  const move = from === to || row ? '' : ` (${from.replace('_', ' ')} → ${to}${also})`
  return `${sayJudged(verdict)}${move}`
}

function printUndo(paper: Paper, deeds: readonly Verdict[]): void {
  for (const run of revertibleRuns(deeds)) paper.say(`Undo: \`unstuck revert ${shortId(run)}\``)
  const late = deeds.filter(({ applied }) => !applied)
  if (late.length === 0) return
  const isTheirs = late.some(({ row, evidence }) => row !== undefined || 'who' in evidence)
  const or = isTheirs ? ', or your database did not take it, as the log then says' : ''
  paper.say(`${plural(late.length, 'verdict')} not applied: somebody was faster${or}.`)
}
