import { shortId } from '../../core/model/id.ts'
import { runView } from '../../presenters/view.ts'
import { printFirst, printOmitted } from '../../lib/terminal/long-lists.ts'
import { ROWS_MAX } from '../../lib/text/sentence.ts'
import type { TextWriter } from '../../lib/terminal/text-writer.ts'
import {
  formatAge,
  formatAgo,
  progressBar,
  formatDoneOfTotal,
  plural,
  formatRunStatus,
  formatSource,
  SEVERITY_STYLE,
} from '../../presenters/format.ts'
import type { StatusReport } from '../../presenters/status.ts'

/** Where nothing ever ran, the way to the first run is what matters. */
export function printFirstSteps(writer: TextWriter, missing?: string): void {
  const hint = missing === undefined ? '' : ` There is no database at ${missing}.`
  writer.paragraph('Nothing has run yet.', { text: hint, style: 'dim' })
  writer.blank()
  writer.line('  unstuck demo           see it survive kill -9, on this machine')
  writer.line('  unstuck work crawl.ts  work on a crawl of your own')
}

export function printStatus(writer: TextWriter, report: StatusReport): void {
  const { data, live, latest, now } = report
  if (!latest && data.attention.length === 0) return printFirstSteps(writer)
  writer.paragraph({
    text: data.summary,
    style: SEVERITY_STYLE[data.severity],
  })
  if (live.length > 0) {
    writer.blank()
    printLive(writer, report)
  } else if (latest) {
    writer.line(
      'Last run: ',
      latest.source,
      ' ',
      shortId(latest.id),
      ', ',
      formatRunStatus(latest.status),
      `, ${formatAgo(latest.finishedAt, now)}`,
    )
  }
  writer.blank()
  writer.line(`Workers: ${workersLine(data.workers)}`)
  const waiting = data.commands.filter(
    ({ source, worker }) => worker !== null && !live.some(({ run }) => run.source === source),
  )
  const print = ({ source, endingSince }: (typeof waiting)[number]): void => {
    const how = endingSince === null ? 'between two runs' : 'its command is being ended'
    writer.line(`Wrapped: ${source}, ${how}`)
  }
  printFirst(writer, waiting, print, '`--json` has all')
  if (data.attention.length > 0) printAttention(writer, report)
}

function printLive(writer: TextWriter, { live, now }: StatusReport): void {
  writer.table(
    [
      { header: 'RUN' },
      { header: 'SOURCE', flex: true },
      { header: 'STATUS' },
      { header: 'DONE', align: 'right' },
      { header: '', optional: 3 },
      { header: 'PAGES', align: 'right', optional: 5 },
      { header: 'ITEMS', align: 'right', optional: 2 },
      { header: 'AGE', align: 'right', optional: 4 },
      { header: 'LAST SIGN', align: 'right', optional: 1 },
    ],
    live.slice(0, ROWS_MAX).map(({ run, health }) => {
      const { done, total, extracted } = runView(run)
      return [
        shortId(run.id),
        formatSource(run),
        health.severity === 'ok'
          ? formatRunStatus(run.status)
          : { text: health.state, style: SEVERITY_STYLE[health.severity] },
        formatDoneOfTotal(run),
        progressBar(done, total),
        String(run.counts.pages),
        String(extracted),
        formatAge(now - run.createdAt),
        formatAgo(run.lastActivityAt, now),
      ]
    }),
  )
  printOmitted(writer, live.length - ROWS_MAX, '`unstuck runs` lists them')
}

function workersLine(counts: StatusReport['data']['workers']): string {
  const parts = Object.entries(counts).map(([sign, count]) => `${count} ${sign}`)
  return parts.length > 0 ? parts.join(', ') : 'none'
}

function printAttention(writer: TextWriter, { data }: StatusReport): void {
  writer.heading(`Needs attention: ${plural(data.attention.length, 'thing')}`)
  const print = ({ source, what, because, command }: (typeof data.attention)[number]): void => {
    const why = because ? `; ${because.replace(/\.$/, '')}` : ''
    writer.paragraph(
      '- ',
      { text: source, style: 'strong' },
      `: ${what}${why}. See \`${command}\`.`,
    )
  }
  printFirst(writer, data.attention, print, '`--json` has all')
}
