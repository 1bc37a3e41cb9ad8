import { shortId } from '../../core/model/id.ts'
import { inWords, type Millis } from '../../core/model/time.ts'
import { whyNot } from '../../core/model/verdict.ts'
import type { Summed } from '../../core/recovery/clean.ts'
import type { JudgedRun } from '../../core/recovery/assess.ts'
import { runView } from '../../presenters/view.ts'
import { printLeftOut, ROWS_MAX } from '../../lib/terminal/long-lists.ts'
import type { Paper } from '../../lib/terminal/text-writer.ts'
import { age, ago, doneOfTotal, plural, sourceOf, whoTakesUp } from '../../presenters/format.ts'

/** Where nothing ever ran. */
export const NOTHING_LIVE: Summed = { total: 0, active: [], resumable: [], dead: [] }

/** Resumable and dead side by side; the active ones only as a number. */
export function printSummary(paper: Paper, summed: Summed, now: Millis): void {
  const { total, active, resumable, dead } = summed
  if (total === 0) {
    paper.say('No run is live: nothing to resume, nothing to clean.')
    return
  }
  paper.say(
    `${plural(total, 'live run')}: ${active.length} active, `,
    { text: `${resumable.length} resumable`, ink: resumable.length > 0 ? 'good' : undefined },
    ', ',
    { text: `${dead.length} dead`, ink: dead.length > 0 ? 'bad' : undefined },
    '.',
  )
  if (resumable.length > 0)
    printRuns(paper, `Resumable: go on when ${whoTakesUp(resumable.map(isRow))}`, resumable, now)
  if (dead.length > 0) printRuns(paper, 'Dead: nothing done, and time is over', dead, now)
}

function isRow({ run }: JudgedRun): boolean {
  return run.adopted !== undefined
}

function printRuns(paper: Paper, title: string, all: readonly JudgedRun[], now: Millis): void {
  const runs = all.slice(0, ROWS_MAX)
  paper.heading(title)
  paper.table(
    [
      { head: 'RUN' },
      { head: 'SOURCE', flex: true },
      { head: 'AGE', align: 'right' },
      { head: 'DONE', align: 'right' },
      { head: 'ITEMS', align: 'right', optional: 3 },
      { head: 'SKIPPED', align: 'right', optional: 4 },
      { head: 'CHECKPOINT', optional: 2 },
      { head: 'LAST ACTIVITY', align: 'right', optional: 1 },
    ],
    runs.map((judged) => {
      const { run, evidence } = judged
      return [
        shortId(run.id),
        sourceOf(run),
        age(evidence.ageMs),
        doneOfTotal(run),
        String(runView(run).extracted),
        String(evidence.skipped),
        checkpointOf(judged),
        ago(run.lastActivityAt, now),
      ]
    }),
  )
  for (const { run, decision } of runs) {
    const cannot = whyNot(run, decision)
    const also = cannot === null ? '' : ` ${cannot}.`
    paper.say({ text: `${shortId(run.id)}: ${decision.because}.${also}`, ink: 'dim' })
  }
  printLeftOut(paper, all.length - ROWS_MAX, '`--json` has all')
}

function checkpointOf({ run, target }: JudgedRun): string {
  if (target && target.page > 0) return `page ${target.page}`
  // Of a row of a user's own table it is only known that there is one.
  if (target) return target.seq > 0 ? 'yes' : 'none'
  return run.counts.pages > 0 ? plural(run.counts.pages, 'page') : 'none'
}

/** Slow honest runs are older than people think. */
export function riskyAge(ageMs: number | undefined, limitMs: number): string | null {
  if (ageMs === undefined || ageMs >= limitMs) return null
  return `Warning: --age ${inWords(ageMs)} is below ${inWords(limitMs)}: a slow honest run may look dead.`
}
