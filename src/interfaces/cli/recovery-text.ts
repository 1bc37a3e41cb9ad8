import { shortId, type RunId } from '../../core/model/id.ts'
import type { Millis } from '../../core/model/time.ts'
import { describeSubject, type Verdict } from '../../core/model/verdict.ts'
import type { AssessedRun } from '../../core/recovery/assess.ts'
import type { RecoveryPlan } from '../../presenters/recovery.ts'
import { revertibleRuns } from '../../presenters/undo.ts'
import { printFirst, printOmitted } from '../../lib/terminal/long-lists.ts'
import { LINES_MAX, ROWS_MAX } from '../../lib/text/sentence.ts'
import type { TextWriter } from '../../lib/terminal/text-writer.ts'
import {
  formatAge,
  formatAgo,
  formatDoneOfTotal,
  plural,
  formatRunStatus,
  formatSource,
  formatProcessCell,
} from '../../presenters/format.ts'
import { groupVerdicts } from './verdict-groups.ts'

/** Every active run, then the verdicts: what would be done, or was. */
export function printPlan(
  writer: TextWriter,
  { active, now, planned, needsAttention, unreadable }: RecoveryPlan,
  isDone = false,
): void {
  for (const { table, because } of unreadable)
    writer.paragraph(
      { text: `Not all can be seen: ${table} cannot be read. `, style: 'warn' },
      because,
    )
  printActive(writer, active, now)
  writer.heading(isDone ? 'What was done' : 'What would be done')
  if (planned.length === 0)
    writer.paragraph(needsAttention.length > 0 ? 'Nothing by itself.' : 'Nothing to recover.')
  printVerdicts(writer, planned, isDone)
  if (isDone) printUndo(writer, planned)
  if (needsAttention.length === 0) return
  writer.heading('Needs attention')
  printVerdicts(writer, needsAttention)
  if (
    needsAttention.some(({ action, blockedBy }) => action === 'abandon' && blockedBy === undefined)
  )
    writer.paragraph('`unstuck clean` marks what is dead.')
}

/** After a person agreed to the plan. */
export function printApplied(writer: TextWriter, { planned }: RecoveryPlan): void {
  const done = planned.filter(({ applied }) => applied)
  writer.blank()
  if (done.length === 0) writer.paragraph('Nothing was changed.')
  else writer.line({ text: 'What was done', style: 'strong' })
  printVerdicts(writer, done, true)
  printUndo(writer, planned)
}

function printActive(writer: TextWriter, active: readonly AssessedRun[], now: Millis): void {
  if (active.length === 0) return writer.paragraph('No run is active.')
  writer.paragraph(`${plural(active.length, 'active run')}:`)
  writer.table(
    [
      { header: 'RUN' },
      { header: 'SOURCE', flex: true },
      { header: 'STATUS' },
      { header: 'DONE', align: 'right' },
      { header: 'AGE', align: 'right', optional: 2 },
      { header: 'OWNER', flex: true, optional: 3 },
      { header: 'LAST SIGN', align: 'right', optional: 1 },
    ],
    active
      .slice(0, ROWS_MAX)
      .map(({ run, owner, evidence }) => [
        shortId(run.id),
        formatSource(run),
        formatRunStatus(run.status),
        formatDoneOfTotal(run),
        formatAge(evidence.ageMs),
        owner ? formatProcessCell(owner.evidence) : 'nobody',
        formatAgo(owner ? now - owner.evidence.heartbeatAgeMs : run.lastActivityAt, now),
      ]),
  )
  printOmitted(writer, active.length - ROWS_MAX, '`unstuck runs` lists them')
}

const EXAMPLES_MAX = 3

/** One line for each, or where they are many one for each group of them. */
function printVerdicts(writer: TextWriter, verdicts: readonly Verdict[], isDone = false): void {
  const isLate = ({ applied }: Verdict): boolean => isDone && !applied
  if (verdicts.length <= LINES_MAX) {
    for (const verdict of verdicts) printVerdict(writer, verdict, isLate(verdict))
    return
  }
  const groups = groupVerdicts(verdicts)
  for (const { first, all } of groups.slice(0, LINES_MAX)) {
    if (all.length === 1) printVerdict(writer, first, isLate(first))
    else printGroup(writer, first, all, isLate(first))
  }
  const left = groups.slice(LINES_MAX).reduce((sum, { all }) => sum + all.length, 0)
  const where = isDone ? '`unstuck history`' : '`--json`'
  printOmitted(writer, left, `${where} has each of the ${verdicts.length}`)
}

function printGroup(
  writer: TextWriter,
  first: Verdict,
  all: readonly Verdict[],
  isLate: boolean,
): void {
  const { action, source, target, row } = first
  const many = plural(all.length, target === null || row ? 'run' : 'target')
  const ids = all
    .slice(0, EXAMPLES_MAX)
    .map(({ target, run, row }) => shortId(row ? run : (target ?? run)))
  writer.paragraph(
    '- ',
    { text: action, style: 'strong' },
    ` ${many} of ${source}${moveOf(first)}${reasonOf(first, isLate)}`,
  )
  writer.paragraph({ text: `  For example ${ids.join(', ')}.`, style: 'dim' })
}

function printVerdict(writer: TextWriter, verdict: Verdict, isLate = false): void {
  const text = ` ${describeSubject(verdict)}${moveOf(verdict)}${reasonOf(verdict, isLate)}`
  writer.paragraph('- ', { text: verdict.action, style: 'strong' }, text)
}

function reasonOf({ because, blockedBy }: Verdict, isLate: boolean): string {
  const late = isLate ? ' (not applied)' : ''
  const why = blockedBy === undefined ? '' : ` ${blockedBy}.`
  return `: ${because}${late}.${why}`
}

/** ` (in progress → planned)`. What a user's own row becomes has a word of their own. */
function moveOf({ action, from, to, row }: Verdict): string {
  const also = action === 'retry' ? ', and a new run is queued' : ''
  return from === to || row ? '' : ` (${from.replace('_', ' ')} → ${to}${also})`
}

function printUndo(writer: TextWriter, deeds: readonly Verdict[]): void {
  const undo = (run: RunId): void => writer.paragraph(`Undo: \`unstuck revert ${shortId(run)}\``)
  printFirst(writer, revertibleRuns(deeds), undo, '`unstuck history` lists what can be undone')
  const late = deeds.filter(({ applied }) => !applied)
  if (late.length === 0) return
  const isAdopted = late.some(({ row, evidence }) => row !== undefined || 'label' in evidence)
  const or = isAdopted ? ', or your database did not take it, as the log then says' : ''
  writer.paragraph(`${plural(late.length, 'verdict')} not applied: somebody was faster${or}.`)
}
