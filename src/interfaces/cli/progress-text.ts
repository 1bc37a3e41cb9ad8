import { shortId } from '../../core/model/id.ts'
import { countOpenTargets, countTargets, type Counts, type Run } from '../../core/model/run.ts'
import { TARGET_STATUSES } from '../../core/model/target.ts'
import type { Millis } from '../../core/model/time.ts'
import { countsView, runView } from '../../presenters/view.ts'
import type { TextWriter } from '../../lib/terminal/text-writer.ts'
import {
  formatAge,
  formatAgo,
  progressBar,
  percent,
  plural,
  formatRunStatus,
  formatTargetStatus,
} from '../../presenters/format.ts'
import type { Progress } from '../../presenters/progress.ts'
import { printGroups } from './groups-text.ts'

/** Before this share is done, the time left would be noise. */
const ETA_MIN_SHARE = 0.02
const MOVING_WITHIN_MS = 60_000

export function printProgress(
  writer: TextWriter,
  progress: Progress,
  now: Millis,
  place: number,
): void {
  const { run, by, groups, counts, pages } = progress
  if (place > 0) writer.blank()
  writer.line(
    { text: run.source, style: 'strong' },
    ` ${shortId(run.id)}, `,
    formatRunStatus(run.status),
    `, last sign ${formatAgo(run.lastActivityAt, now)}`,
  )
  writer.paragraph(headline(run, counts, now))
  writer.blank()
  if (by === 'group') printGroups(writer, groups, Infinity)
  else if (by === 'status')
    printShares(
      writer,
      'STATUS',
      TARGET_STATUSES.map((status) => [formatTargetStatus(status).text, counts.targets[status]]),
    )
  else
    printShares(
      writer,
      'AT PAGE',
      pages.map(({ page, targets }) => [String(page), targets]),
    )
}

function headline(run: Run, counts: Counts, now: Millis): string {
  const view = countsView(counts)
  const whole = counts === run.counts ? runView(run) : view
  const parts = [
    `${progressBar(whole.done, whole.total)} ${whole.done}/${whole.total}, ${percent(whole.done, whole.total)}`,
    plural(view.pages, 'page'),
    plural(view.extracted, 'item'),
  ]
  if (run.plannedAt === null && run.kind === 'crawl') parts.push('targets still come in')
  const ranMs = (run.finishedAt ?? now) - (run.startedAt ?? now)
  if (ranMs > 0 && view.pages > 0)
    parts.push(`${Math.round((view.pages * 60_000) / ranMs)} pages/min`)
  const left = timeLeft(run, counts, now)
  if (left !== null) parts.push(`about ${formatAge(left)} left`)
  return parts.join(', ')
}

/** By the pace so far. Null where that would be no better than a guess. */
function timeLeft(run: Run, counts: Counts, now: Millis): number | null {
  const isMoving = run.status === 'running' && now - run.lastActivityAt < MOVING_WITHIN_MS
  if (!isMoving || run.plannedAt === null || run.startedAt === null) return null
  const total = run.progress?.total ?? countTargets(counts)
  const open = run.progress ? total - run.progress.done : countOpenTargets(counts)
  const ended = total - open
  if (open <= 0 || ended <= 0 || ended / total < ETA_MIN_SHARE) return null
  return ((now - run.startedAt) * open) / ended
}

function printShares(
  writer: TextWriter,
  head: string,
  rows: readonly (readonly [string, number])[],
): void {
  const total = rows.reduce((sum, [, targets]) => sum + targets, 0)
  writer.table(
    [
      { header: head },
      { header: 'TARGETS', align: 'right' },
      { header: '' },
      { header: 'SHARE', align: 'right' },
    ],
    rows.map(([name, targets]) => [
      name,
      String(targets),
      progressBar(targets, total),
      percent(targets, total),
    ]),
  )
}
