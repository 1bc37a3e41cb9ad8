import { formatNumber } from './progress.ts'
import { humanizeDuration } from '../../core/model/time.ts'
import type { TextWriter } from '../../lib/terminal/text-writer.ts'
import { plural } from '../../presenters/format.ts'
import type { Figures, Report } from './report.ts'
import type { Problem } from './trial.ts'

/** What the report says besides the figures. */
export type ReportContext = {
  readonly seed: number
  /** The command that plays the same again. */
  readonly replay: string
  /** Commands that look at what is left, and what each shows; empty when nothing is. */
  readonly next: readonly (readonly [command: string, shows: string])[]
  readonly leftBehind: string | null
}

/** For a trial that came to its end. */
export function printReport(writer: TextWriter, report: Report, context: ReportContext): void {
  printFigures(writer, report)
  writer.blank()
  printKills(writer, report, context.seed)
  writer.blank()
  printLosses(writer, report)
  for (const remark of report.remarks) {
    writer.blank()
    writer.paragraph(remark)
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

/** What is wrong, each with its first examples; also where nothing else can be said. */
export function printProblems(writer: TextWriter, problems: readonly Problem[]): void {
  writer.paragraph({ text: 'Something is wrong:', style: 'bad' })
  for (const { says, examples, count, hint } of problems) {
    writer.paragraph({ text: `- ${says}`, style: 'bad' }, hint === null ? '' : ` ${hint}`)
    for (const example of examples) writer.line(`    ${example}`)
    if (count > examples.length && examples.length > 0) {
      writer.line(`    … and ${formatNumber(count - examples.length)} more`)
    }
  }
}

/** How to see it again, and what is left to look at. Commands stay on one line, for whoever copies them. */
export function printNextSteps(
  writer: TextWriter,
  { replay, next, leftBehind }: ReportContext,
): void {
  writer.blank()
  writer.paragraph(`The same kills again: \`${replay}\``)
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
  row(writer, 'kills', report.kills, kills)
  row(writer, 'recoveries', report.recoveries, recoveryText(report))
  row(
    writer,
    'late writes refused',
    report.lateWritesRefused,
    'of copies that had lost their claim',
  )
}

function recoveryText({ recoveries, slowestRecoveryMs, medianRecoveryMs }: Report): string {
  if (slowestRecoveryMs === null) return recoveries > 0 ? '' : 'nothing was in hand when it died'
  return `taken up after ${slowestRecoveryMs} ms at most, median ${medianRecoveryMs} ms`
}

function printLosses(writer: TextWriter, report: Report): void {
  const mustBeZero = (name: string, count: number | null, remark: string): void => {
    if (count !== null) row(writer, name, count, remark, count === 0 ? 'good' : 'bad')
  }
  mustBeZero('pages lost', report.pagesLost, 'by where each target ended')
  mustBeZero('pages doubled', report.pagesDoubled, 'saved again under a new number')
  mustBeZero('items lost', report.itemsLost, 'by source and key')
  mustBeZero('items doubled', report.itemsDoubled, 'keys that the reference does not have')
  mustBeZero('items different', report.itemsDifferent, 'the same key with other data')
  mustBeZero('output lost', report.outputLost, 'lines of your own file')
  mustBeZero('output doubled', report.outputDoubled, 'a key twice, or one too many')
}

function row(
  writer: TextWriter,
  name: string,
  figure: number,
  remark: string,
  style: 'strong' | 'good' | 'bad' = 'strong',
): void {
  writer.line(`  ${name.padEnd(22)}`, { text: formatNumber(figure).padEnd(8), style }, remark)
}
