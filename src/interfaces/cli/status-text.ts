import { shortId } from '../../core/model/id.ts'
import { runView } from '../../presenters/view.ts'
import { isStuck } from '../../presenters/health.ts'
import { printFirst, printLeftOut, ROWS_MAX } from '../../lib/terminal/long-lists.ts'
import type { Paper } from '../../lib/terminal/text-writer.ts'
import { age, ago, bar, doneOfTotal, plural, runStatus, sourceOf } from '../../presenters/format.ts'
import type { Survey } from '../../presenters/status.ts'

/** Where nothing ever ran, the way to the first run is what matters. */
export function printFirstSteps(paper: Paper, missing?: string): void {
  const hint = missing === undefined ? '' : ` There is no database at ${missing}.`
  paper.say('Nothing has run yet.', { text: hint, ink: 'dim' })
  paper.blank()
  paper.line('  unstuck demo           see it survive kill -9, on this machine')
  paper.line('  unstuck work crawl.ts  work on a crawl of your own')
}

export function printStatus(paper: Paper, survey: Survey): void {
  const { data, live, latest, now } = survey
  if (!latest && data.attention.length === 0) return printFirstSteps(paper)
  const stuck = live.some(({ health }) => isStuck(health))
  paper.say({
    text: data.summary,
    ink: stuck ? 'bad' : data.attention.length > 0 ? 'warn' : 'good',
  })
  if (live.length > 0) {
    paper.blank()
    printLive(paper, survey)
  } else if (latest) {
    paper.line(
      'Last run: ',
      latest.source,
      ' ',
      shortId(latest.id),
      ', ',
      runStatus(latest.status),
      `, ${ago(latest.finishedAt, now)}`,
    )
  }
  paper.blank()
  paper.line(`Workers: ${workersLine(data.workers)}`)
  const waiting = data.commands.filter(
    ({ source, worker }) => worker !== null && !live.some(({ run }) => run.source === source),
  )
  const print = ({ source, endingSince }: (typeof waiting)[number]): void => {
    const how = endingSince === null ? 'between two runs' : 'its command is being ended'
    paper.line(`Wrapped: ${source}, ${how}`)
  }
  printFirst(paper, waiting, print, '`--json` has all')
  if (data.attention.length > 0) printAttention(paper, survey)
}

function printLive(paper: Paper, { live, now }: Survey): void {
  const isCut = live.length > ROWS_MAX
  // Where not all are shown, what is stuck comes first.
  const place = ({ health }: (typeof live)[number]): number => (isCut && isStuck(health) ? 0 : 1)
  const shown = live.toSorted((a, b) => place(a) - place(b))
  paper.table(
    [
      { head: 'RUN' },
      { head: 'SOURCE', flex: true },
      { head: 'STATUS' },
      { head: 'DONE', align: 'right' },
      { head: '', optional: 3 },
      { head: 'PAGES', align: 'right', optional: 5 },
      { head: 'ITEMS', align: 'right', optional: 2 },
      { head: 'AGE', align: 'right', optional: 4 },
      { head: 'LAST SIGN', align: 'right', optional: 1 },
    ],
    shown.slice(0, ROWS_MAX).map(({ run, health }) => {
      const { done, total, extracted } = runView(run)
      return [
        shortId(run.id),
        sourceOf(run),
        isStuck(health) ? { text: health.state, ink: 'bad' } : runStatus(run.status),
        doneOfTotal(run),
        bar(done, total),
        String(run.counts.pages),
        String(extracted),
        age(now - run.createdAt),
        ago(run.lastActivityAt, now),
      ]
    }),
  )
  printLeftOut(paper, live.length - ROWS_MAX, '`unstuck runs` lists them')
}

function workersLine(counts: Survey['data']['workers']): string {
  const parts = Object.entries(counts).map(([sign, count]) => `${count} ${sign}`)
  return parts.length > 0 ? parts.join(', ') : 'none'
}

function printAttention(paper: Paper, { data }: Survey): void {
  paper.heading(`Left for a person: ${plural(data.attention.length, 'thing')}`)
  const print = ({ source, what, because, command }: (typeof data.attention)[number]): void => {
    const why = because ? `; ${because.replace(/\.$/, '')}` : ''
    paper.say('- ', { text: source, ink: 'strong' }, `: ${what}${why}. See \`${command}\`.`)
  }
  printFirst(paper, data.attention, print, '`--json` has all')
}
