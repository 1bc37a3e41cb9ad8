import { formatNumber } from './progress.ts'
import { humanizeDuration } from '../../core/model/time.ts'
import type { TextWriter } from '../../lib/terminal/text-writer.ts'
import { plural } from '../../presenters/format.ts'
import type { Figures, Report } from './report.ts'
import type { Problem } from './trial.ts'

/** What the report prints besides the figures. */
export type ReportContext = {
  readonly seed: number
  /** The command that injects the same faults again. */
  readonly replay: string
  /** Commands that show what is left, and what each shows; empty when nothing is left. */
  readonly next: readonly (readonly [command: string, shows: string])[]
  readonly leftBehind: string | null
}

/** Prints the report of a trial that came to its end. */
export function printReport(writer: TextWriter, report: Report, context: ReportContext): void {
  printFigures(writer, report)
  writer.blank()
  printKills(writer, report, context.seed)
  writer.blank()
  printLosses(writer, report)
  for (const warning of report.warnings) {
    writer.blank()
    writer.paragraph(warning)
  }
  writer.blank()
  if (report.ok) {
    writer.paragraph({
      text: `${plural(report.kills, 'kill')}: nothing lost, nothing doubled.`,
      style: 'good',
    })
  } else printProblems(writer, report.problems)
  printNextSteps(writer, context)
}

/** Prints what is wrong, each with its first examples. */
export function printProblems(writer: TextWriter, problems: readonly Problem[]): void {
  writer.paragraph({ text: 'Something is wrong:', style: 'bad' })
  for (const { message, examples, count, hint } of problems) {
    writer.paragraph({ text: `- ${message}`, style: 'bad' }, hint === null ? '' : ` ${hint}`)
    for (const example of examples) writer.line(`    ${example}`)
    if (count > examples.length && examples.length > 0) {
      writer.line(`    … and ${formatNumber(count - examples.length)} more`)
    }
  }
}

/** Prints how to repeat the trial, and what is left. Commands stay on one line, so that they can be copied. */
export function printNextSteps(
  writer: TextWriter,
  { replay, next, leftBehind }: ReportContext,
): void {
  writer.blank()
  writer.paragraph(`Repeat these kills: \`${replay}\``)
  for (const [command, shows] of next) writer.paragraph(`- ${shows}: \`${command}\``)
  if (leftBehind !== null) writer.paragraph({ text: leftBehind, style: 'dim' })
}

function printFigures(writer: TextWriter, { reference, result }: Report): void {
  const row = (name: string, figure: (of: Figures) => string): void =>
    writer.line(`  ${name.padEnd(22)}${figure(reference).padEnd(12)}${figure(result)}`)
  writer.line({ text: `${' '.repeat(24)}${'reference'.padEnd(12)}with kills`, style: 'dim' })
  row('pages saved', ({ pages }) => formatNumber(pages))
  row('items saved', ({ items }) => formatNumber(items))
  row('targets done', ({ targets }) => formatNumber(targets))
  row('time', ({ ms }) => humanizeDuration(ms))
}

function printKills(writer: TextWriter, report: Report, seed: number): void {
  const kinds = Object.entries(report.killsBySignal).map(([signal, times]) => `${times} ${signal}`)
  const kills = [...kinds, plural(report.starts, 'start'), `seed ${seed}`].join(', ')
  printRows(writer, [
    ['kills', report.kills, kills],
    ['recoveries', report.recoveries, recoveryText(report)],
    ['late writes refused', report.lateWritesRefused, 'by workers that had lost their claim'],
  ])
}

function recoveryText(report: Report): string {
  if (report.slowestRecoveryMs === null)
    return report.recoveries > 0 ? '' : 'no target was claimed when it died'
  return reclaimedText(report)
}

/** `claimed after 812 ms at most, median 300 ms`; empty when nothing was lost. */
export function reclaimedText({
  recoveries,
  slowestRecoveryMs,
  medianRecoveryMs,
}: Pick<Report, 'recoveries' | 'slowestRecoveryMs' | 'medianRecoveryMs'>): string {
  if (slowestRecoveryMs === null) return ''
  const median = recoveries > 1 ? `, median ${medianRecoveryMs} ms` : ''
  return `claimed after ${slowestRecoveryMs} ms at most${median}`
}

function printLosses(writer: TextWriter, report: Report): void {
  printZeroRows(writer, [
    ['pages lost', report.pagesLost, 'by the last page of each target'],
    ['pages doubled', report.pagesDoubled, 'saved again under a new number'],
    ['items lost', report.itemsLost, 'by source and key'],
    ['items doubled', report.itemsDoubled, 'keys that are not in the reference'],
    ['items different', report.itemsDifferent, 'the same key with other data'],
    ['output lost', report.outputLost, 'lines of the --output file'],
    ['output doubled', report.outputDoubled, 'repeated or unexpected keys'],
  ])
}

type Row<T> = readonly [name: string, figure: T, note: string]

/** Prints figures, each with its name before it and a note after it. */
export function printRows(writer: TextWriter, rows: readonly Row<number | string>[]): void {
  for (const one of rows) printRow(writer, one, 'strong')
}

/** Prints figures that must be 0; nothing for null. */
export function printZeroRows(writer: TextWriter, rows: readonly Row<number | null>[]): void {
  for (const [name, count, note] of rows)
    if (count !== null) printRow(writer, [name, count, note], count === 0 ? 'good' : 'bad')
}

function printRow(
  writer: TextWriter,
  [name, figure, note]: Row<number | string>,
  style: 'strong' | 'good' | 'bad',
): void {
  const text = typeof figure === 'number' ? formatNumber(figure) : figure
  writer.line(`  ${name.padEnd(20)}`, { text: text.padEnd(7), style }, note)
}
