import { shortId } from '../../core/model/id.ts'
import { openTargets, totalTargets, type Counts, type Run } from '../../core/model/run.ts'
import { TARGET_STATUSES } from '../../core/model/target.ts'
import type { Millis } from '../../core/model/time.ts'
import { countsView, runView } from '../../presenters/view.ts'
import type { Paper } from '../../lib/terminal/text-writer.ts'
import { age, ago, bar, percent, plural, runStatus, targetStatus } from '../../presenters/format.ts'
import type { Progress } from '../../presenters/progress.ts'
import { printGroups } from './groups-text.ts'

/** Before this share is done, the time left would be noise. */
const GUESS_FROM = 0.02
const MOVING_WITHIN_MS = 60_000

export function printProgress(paper: Paper, progress: Progress, now: Millis, place: number): void {
  const { run, by, groups, counts, pages } = progress
  if (place > 0) paper.blank()
  paper.line(
    { text: run.source, ink: 'strong' },
    ` ${shortId(run.id)}, `,
    runStatus(run.status),
    `, last sign ${ago(run.lastActivityAt, now)}`,
  )
  paper.say(headline(run, counts, now))
  paper.blank()
  if (by === 'group') printGroups(paper, groups, Infinity)
  else if (by === 'status')
    printShares(
      paper,
      'STATUS',
      TARGET_STATUSES.map((status) => [targetStatus(status).text, counts.targets[status]]),
    )
  else
    printShares(
      paper,
      'AT PAGE',
      pages.map(({ page, targets }) => [String(page), targets]),
    )
}

function headline(run: Run, counts: Counts, now: Millis): string {
  const view = countsView(counts)
  const whole = counts === run.counts ? runView(run) : view
  const parts = [
    `${bar(whole.done, whole.total)} ${whole.done}/${whole.total}, ${percent(whole.done, whole.total)}`,
    plural(view.pages, 'page'),
    plural(view.extracted, 'item'),
  ]
  if (run.plannedAt === null && run.kind === 'crawl') parts.push('targets still come in')
  const ranMs = (run.finishedAt ?? now) - (run.startedAt ?? now)
  if (ranMs > 0 && view.pages > 0)
    parts.push(`${Math.round((view.pages * 60_000) / ranMs)} pages/min`)
  const left = timeLeft(run, counts, now)
  if (left !== null) parts.push(`about ${age(left)} left`)
  return parts.join(', ')
}

/** By the pace so far. Null where that would be no better than a guess. */
function timeLeft(run: Run, counts: Counts, now: Millis): number | null {
  const isMoving = run.status === 'running' && now - run.lastActivityAt < MOVING_WITHIN_MS
  if (!isMoving || run.plannedAt === null || run.startedAt === null) return null
  const total = run.progress?.total ?? totalTargets(counts)
  const open = run.progress ? total - run.progress.done : openTargets(counts)
  const ended = total - open
  if (open <= 0 || ended <= 0 || ended / total < GUESS_FROM) return null
  return ((now - run.startedAt) * open) / ended
}

function printShares(
  paper: Paper,
  head: string,
  rows: readonly (readonly [string, number])[],
): void {
  const total = rows.reduce((sum, [, targets]) => sum + targets, 0)
  paper.table(
    [
      { head },
      { head: 'TARGETS', align: 'right' },
      { head: '' },
      { head: 'SHARE', align: 'right' },
    ],
    rows.map(([name, targets]) => [
      name,
      String(targets),
      bar(targets, total),
      percent(targets, total),
    ]),
  )
}
