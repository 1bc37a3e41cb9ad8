import { shortId } from '../../core/model/id.ts'
import { humanizeDuration, type Millis } from '../../core/model/time.ts'
import { blockedReason } from '../../core/model/verdict.ts'
import type { ClassifiedRuns } from '../../core/recovery/clean.ts'
import type { AssessedRun } from '../../core/recovery/assess.ts'
import { runView } from '../../presenters/view.ts'
import { printOmitted } from '../../lib/terminal/long-lists.ts'
import { ROWS_MAX } from '../../lib/text/sentence.ts'
import type { TextWriter } from '../../lib/terminal/text-writer.ts'
import {
  formatAge,
  formatAgo,
  formatDoneOfTotal,
  plural,
  formatSource,
  nextStartCondition,
} from '../../presenters/format.ts'

/** Where nothing ever ran. */
export const NOTHING_LIVE: ClassifiedRuns = {
  now: 0,
  total: 0,
  active: [],
  resumable: [],
  dead: [],
  severity: 'ok',
}

/** Resumable and dead side by side; the active ones only as a number. */
export function printSummary(writer: TextWriter, classified: ClassifiedRuns): void {
  const { now, total, active, resumable, dead } = classified
  if (total === 0) {
    writer.paragraph('No run is live: nothing to resume, nothing to clean.')
    return
  }
  writer.paragraph(
    `${plural(total, 'live run')}: ${active.length} active, `,
    { text: `${resumable.length} resumable`, style: resumable.length > 0 ? 'good' : undefined },
    ', ',
    { text: `${dead.length} dead`, style: dead.length > 0 ? 'bad' : undefined },
    '.',
  )
  if (resumable.length > 0)
    printRuns(
      writer,
      `Resumable: go on when ${nextStartCondition(resumable.map(isRow))}`,
      resumable,
      now,
    )
  if (dead.length > 0) printRuns(writer, 'Dead: nothing done, and time is over', dead, now)
}

function isRow({ run }: AssessedRun): boolean {
  return run.adopted !== undefined
}

function printRuns(
  writer: TextWriter,
  title: string,
  all: readonly AssessedRun[],
  now: Millis,
): void {
  const runs = all.slice(0, ROWS_MAX)
  writer.heading(title)
  writer.table(
    [
      { header: 'RUN' },
      { header: 'SOURCE', flex: true },
      { header: 'AGE', align: 'right' },
      { header: 'DONE', align: 'right' },
      { header: 'ITEMS', align: 'right', optional: 3 },
      { header: 'SKIPPED', align: 'right', optional: 4 },
      { header: 'CHECKPOINT', optional: 2 },
      { header: 'LAST ACTIVITY', align: 'right', optional: 1 },
    ],
    runs.map((assessed) => {
      const { run, evidence } = assessed
      return [
        shortId(run.id),
        formatSource(run),
        formatAge(evidence.ageMs),
        formatDoneOfTotal(run),
        String(runView(run).extracted),
        String(evidence.skipped),
        checkpointOf(assessed),
        formatAgo(run.lastActivityAt, now),
      ]
    }),
  )
  for (const { run, decision } of runs) {
    const blockedBy = blockedReason(run, decision)
    const also = blockedBy === null ? '' : ` ${blockedBy}.`
    writer.paragraph({ text: `${shortId(run.id)}: ${decision.because}.${also}`, style: 'dim' })
  }
  printOmitted(writer, all.length - ROWS_MAX, '`--json` has all')
}

function checkpointOf({ run, target }: AssessedRun): string {
  if (target && target.page > 0) return `page ${target.page}`
  // Of a row of a user's own table it is only known that there is one.
  if (target) return target.seq > 0 ? 'yes' : 'none'
  return run.counts.pages > 0 ? plural(run.counts.pages, 'page') : 'none'
}

/** Slow honest runs are older than people think. */
export function riskyAgeWarning(ageMs: number | undefined, limitMs: number): string | null {
  if (ageMs === undefined || ageMs >= limitMs) return null
  return `Warning: --age ${humanizeDuration(ageMs)} is below ${humanizeDuration(limitMs)}: a slow honest run may look dead.`
}
