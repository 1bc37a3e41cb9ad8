import { shortId } from '../../core/model/id.ts'
import { iso, type Millis } from '../../core/model/time.ts'
import { safeJson } from '../../core/events/safe-text.ts'
import type { AuditEntry, Held } from '../../core/store/store.ts'
import type { LetterGroup } from '../../presenters/dead-letters.ts'
import { printExplanation } from '../cli/explain-text.ts'
import type { Paper } from '../../lib/terminal/text-writer.ts'
import { ago, plural, targetStatus, whoWords, workerSign } from '../../presenters/format.ts'
import { printRun } from '../cli/run-text.ts'
import { aboutOf, printDeed } from '../cli/history-text.ts'
import type { WorkerView } from '../../presenters/view.ts'
import type { Detail } from './snapshot.ts'

/** What is behind a row: the same that the commands print. */
export function printDetail(paper: Paper, detail: Detail, now: Millis): void {
  switch (detail.of) {
    case 'run':
      return printRun(paper, detail.page)
    case 'worker':
      return printWorker(paper, detail, now)
    case 'verdict': {
      const { explained, policy } = detail.explained
      return printExplanation(paper, explained, { policy, preset: detail.preset })
    }
    case 'letter':
      return printLetter(paper, detail, now)
    case 'entry':
      return printEntry(paper, detail.entry, now)
  }
}

function printWorker(
  paper: Paper,
  { worker, held }: { worker: WorkerView; held: readonly Held[] },
  now: Millis,
): void {
  paper.line(
    { text: `Worker ${shortId(worker.id)}`, ink: 'strong' },
    ` of ${worker.source}, ${whoWords(worker)}: `,
    workerSign(worker.sign),
  )
  paper.say(`${worker.because}.`)
  paper.say({
    text: `It started ${ago(Date.parse(worker.startedAt), now)}. Its id is ${worker.id}.`,
    ink: 'dim',
  })
  paper.heading(
    held.length === 0 ? 'It holds nothing' : `In hand: ${plural(held.length, 'target')}`,
  )
  if (held.length === 0) return
  paper.table(
    [
      { head: 'TARGET' },
      { head: 'SOURCE', flex: true, optional: 2 },
      { head: 'KEY', flex: true },
      { head: 'PAGE', align: 'right' },
      { head: 'LAST SIGN', align: 'right', optional: 1 },
    ],
    held.map(({ target, run }) => [
      shortId(target.id),
      run.source,
      target.key,
      target.pageTarget === null ? `${target.page}` : `${target.page}/${target.pageTarget}`,
      ago(target.lastActivityAt, now),
    ]),
  )
}

function printLetter(
  paper: Paper,
  { group, isPartial }: { group: LetterGroup; isPartial: boolean },
  now: Millis,
): void {
  const { error, count, sources, sample, firstAt, lastAt } = group
  paper.say({ text: error, ink: 'bad' })
  paper.blank()
  paper.say(
    `${isPartial ? 'At least ' : ''}${plural(count, 'target')} of ${sources.join(', ')}; first ${ago(Date.parse(firstAt), now)}, ` +
      `last ${ago(Date.parse(lastAt), now)}.`,
  )
  paper.heading('For example')
  paper.table(
    [{ head: 'TARGET' }, { head: 'RUN' }, { head: 'STATUS' }, { head: 'KEY', flex: true }],
    sample.map(({ id, run, key, status }) => [
      shortId(id),
      shortId(run),
      targetStatus(status),
      key,
    ]),
  )
  paper.heading('What to do')
  for (const run of new Set(sample.map((one) => one.run))) {
    const statuses = new Set(sample.filter((one) => one.run === run).map(({ status }) => status))
    if (statuses.has('failed')) paper.say(`- \`unstuck reset-failed ${shortId(run)}\``)
    if (statuses.has('parked') || statuses.has('stuck'))
      paper.say(`- \`unstuck unpark --run ${shortId(run)}\``)
  }
  paper.say('They go on from their last saved pages.')
}

function printEntry(paper: Paper, entry: AuditEntry, now: Millis): void {
  printDeed(paper, entry, now, `${aboutOf(entry)} of ${entry.source}`)
  paper.say({ text: `${iso(entry.at)}, entry ${entry.id}, by ${entry.actor}`, ink: 'dim' })
  for (const part of ['before', 'after', 'evidence'] as const) {
    if (entry[part] === null) continue
    paper.heading(part)
    for (const line of safeJson(entry[part], 2).split('\n')) paper.line(line)
  }
}
