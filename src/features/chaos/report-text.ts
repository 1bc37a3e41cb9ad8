import { thousands } from './demo/reporter.ts'
import { inWords } from '../../core/model/time.ts'
import type { Paper } from '../../lib/terminal/text-writer.ts'
import { plural } from '../../presenters/format.ts'
import type { Figures, Report } from './report.ts'
import type { Problem } from './trial.ts'

/** What the report says besides the figures. */
export type Surroundings = {
  readonly seed: number
  /** The command that plays the same again. */
  readonly replay: string
  /** Commands that look at what is left, and what each shows; empty when nothing is. */
  readonly next: readonly (readonly [command: string, shows: string])[]
  readonly leftBehind: string | null
}

/** For a trial that came to its end. */
export function printReport(paper: Paper, report: Report, around: Surroundings): void {
  printFigures(paper, report)
  paper.blank()
  printKills(paper, report, around.seed)
  paper.blank()
  printLosses(paper, report)
  for (const remark of report.remarks) {
    paper.blank()
    paper.say(remark)
  }
  paper.blank()
  if (report.ok) {
    paper.say({
      text: `${plural(report.kills, 'kill')}: nothing lost, nothing doubled.`,
      ink: 'good',
    })
  } else printProblems(paper, report.problems)
  printRest(paper, around)
}

/** What is wrong, each with its first examples; also where nothing else can be said. */
export function printProblems(paper: Paper, problems: readonly Problem[]): void {
  paper.say({ text: 'Something is wrong:', ink: 'bad' })
  for (const { says, examples, count, hint } of problems) {
    paper.say({ text: `- ${says}`, ink: 'bad' }, hint === null ? '' : ` ${hint}`)
    for (const example of examples) paper.line(`    ${example}`)
    if (count > examples.length && examples.length > 0) {
      paper.line(`    … and ${thousands(count - examples.length)} more`)
    }
  }
}

/** How to see it again, and what is left to look at. Commands stay on one line, for whoever copies them. */
export function printRest(paper: Paper, { replay, next, leftBehind }: Surroundings): void {
  paper.blank()
  paper.say(`The same kills again: \`${replay}\``)
  for (const [command, shows] of next) paper.say(`- ${shows}: \`${command}\``)
  if (leftBehind !== null) paper.say({ text: leftBehind, ink: 'dim' })
}

function printFigures(paper: Paper, { reference, result }: Report): void {
  const row = (name: string, figure: (of: Figures) => string): void =>
    paper.line(`  ${name.padEnd(22)}${figure(reference).padEnd(12)}${figure(result)}`)
  paper.line({ text: `${' '.repeat(24)}${'reference'.padEnd(12)}with kills`, ink: 'dim' })
  row('pages saved', ({ pages }) => thousands(pages))
  row('items saved', ({ items }) => thousands(items))
  row('targets done', ({ targets }) => thousands(targets))
  row('time', ({ ms }) => inWords(ms))
}

function printKills(paper: Paper, report: Report, seed: number): void {
  const kinds = Object.entries(report.killsBySignal).map(([signal, times]) => `${times} ${signal}`)
  const kills = [...kinds, plural(report.starts, 'start'), `seed ${seed}`].join(', ')
  row(paper, 'kills', report.kills, kills)
  row(paper, 'recoveries', report.recoveries, recoveryText(report))
  row(paper, 'late writes refused', report.lateWritesRefused, 'of copies that had lost their claim')
}

function recoveryText({ recoveries, slowestRecoveryMs, medianRecoveryMs }: Report): string {
  if (slowestRecoveryMs === null) return recoveries > 0 ? '' : 'nothing was in hand when it died'
  return `taken up after ${slowestRecoveryMs} ms at most, median ${medianRecoveryMs} ms`
}

function printLosses(paper: Paper, report: Report): void {
  const mustBeZero = (name: string, count: number | null, remark: string): void => {
    if (count !== null) row(paper, name, count, remark, count === 0 ? 'good' : 'bad')
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
  paper: Paper,
  name: string,
  figure: number,
  remark: string,
  ink: 'strong' | 'good' | 'bad' = 'strong',
): void {
  paper.line(`  ${name.padEnd(22)}`, { text: thousands(figure).padEnd(8), ink }, remark)
}
