import { shortId } from '../../core/model/id.ts'
import { iso, type Millis } from '../../core/model/time.ts'
import { safeJson } from '../../core/events/safe-text.ts'
import type { AuditEntry, HeldTarget } from '../../core/store/store.ts'
import type { DeadLetterGroup } from '../../presenters/dead-letters.ts'
import { printExplanation } from '../cli/explain-text.ts'
import type { TextWriter } from '../../lib/terminal/text-writer.ts'
import {
  formatAgo,
  plural,
  formatTargetStatus,
  formatProcess,
  formatLiveness,
} from '../../presenters/format.ts'
import { presentRun } from '../../presenters/run.ts'
import { describeSubject, printAuditEntry } from '../cli/history-text.ts'
import type { WorkerView } from '../../presenters/view.ts'
import type { Detail } from './snapshot.ts'

/** What is behind a row: the same that the commands print. */
export function printDetail(writer: TextWriter, detail: Detail, now: Millis): void {
  switch (detail.kind) {
    case 'run':
      return writer.sections(presentRun(detail.page).sections)
    case 'worker':
      return printWorker(writer, detail, now)
    case 'verdict': {
      const { explanation, policy } = detail.explained
      return printExplanation(writer, explanation, { policy, preset: detail.preset })
    }
    case 'letter':
      return printDeadLetterGroup(writer, detail, now)
    case 'entry':
      return printEntry(writer, detail.entry, now)
  }
}

function printWorker(
  writer: TextWriter,
  { worker, claimed }: { worker: WorkerView; claimed: readonly HeldTarget[] },
  now: Millis,
): void {
  writer.line(
    { text: `Worker ${shortId(worker.id)}`, style: 'strong' },
    ` of ${worker.source}, ${formatProcess(worker)}: `,
    formatLiveness(worker.liveness),
  )
  writer.paragraph(`${worker.because}.`)
  writer.paragraph({
    text: `It started ${formatAgo(Date.parse(worker.startedAt), now)}. Its id is ${worker.id}.`,
    style: 'dim',
  })
  writer.heading(
    claimed.length === 0 ? 'It holds nothing' : `In hand: ${plural(claimed.length, 'target')}`,
  )
  if (claimed.length === 0) return
  writer.table(
    [
      { header: 'TARGET' },
      { header: 'SOURCE', flex: true, optional: 2 },
      { header: 'KEY', flex: true },
      { header: 'PAGE', align: 'right' },
      { header: 'LAST SIGN', align: 'right', optional: 1 },
    ],
    claimed.map(({ target, run }) => [
      shortId(target.id),
      run.source,
      target.key,
      target.pageTarget === null ? `${target.page}` : `${target.page}/${target.pageTarget}`,
      formatAgo(target.lastActivityAt, now),
    ]),
  )
}

function printDeadLetterGroup(
  writer: TextWriter,
  { group, isPartial }: { group: DeadLetterGroup; isPartial: boolean },
  now: Millis,
): void {
  const { error, count, sources, sample, firstAt, lastAt } = group
  writer.paragraph({ text: error, style: 'bad' })
  writer.blank()
  writer.paragraph(
    `${isPartial ? 'At least ' : ''}${plural(count, 'target')} of ${sources.join(', ')}; first ${formatAgo(Date.parse(firstAt), now)}, ` +
      `last ${formatAgo(Date.parse(lastAt), now)}.`,
  )
  writer.heading('For example')
  writer.table(
    [{ header: 'TARGET' }, { header: 'RUN' }, { header: 'STATUS' }, { header: 'KEY', flex: true }],
    sample.map(({ id, run, key, status }) => [
      shortId(id),
      shortId(run),
      formatTargetStatus(status),
      key,
    ]),
  )
  writer.heading('What to do')
  for (const run of new Set(sample.map((one) => one.run))) {
    const statuses = new Set(sample.filter((one) => one.run === run).map(({ status }) => status))
    if (statuses.has('failed')) writer.paragraph(`- \`unstuck reset-failed ${shortId(run)}\``)
    if (statuses.has('parked') || statuses.has('stuck'))
      writer.paragraph(`- \`unstuck unpark --run ${shortId(run)}\``)
  }
  writer.paragraph('They go on from their last saved pages.')
}

function printEntry(writer: TextWriter, entry: AuditEntry, now: Millis): void {
  printAuditEntry(writer, entry, now, `${describeSubject(entry)} of ${entry.source}`)
  writer.paragraph({ text: `${iso(entry.at)}, entry ${entry.id}, by ${entry.actor}`, style: 'dim' })
  for (const part of ['before', 'after', 'evidence'] as const) {
    if (entry[part] === null) continue
    writer.heading(part)
    for (const line of safeJson(entry[part], 2).split('\n')) writer.line(line)
  }
}
