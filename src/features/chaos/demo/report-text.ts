import { humanizeDuration } from '../../../core/model/time.ts'
import type { TextWriter } from '../../../lib/terminal/text-writer.ts'
import type { Style } from '../../../lib/text/sentence.ts'
import { plural } from '../../../presenters/format.ts'
import type { Directory } from './directory.ts'
import { formatNumber } from '../progress.ts'
import { CLAIMABLE_MAX_MS, type InjectedFaults, type Report } from './report.ts'

/** What the report prints besides the figures. */
export type ReportContext = {
  readonly expected: Directory
  readonly faults: InjectedFaults
  readonly tookMs: number
  readonly seed: number
  /** Processors and load: a busy machine recovers more slowly. */
  readonly machine: string
  readonly isBusy: boolean
  /** Commands to continue with, and what each shows. */
  readonly next: readonly (readonly [command: string, shows: string])[]
  /** What is left to inspect and delete. */
  readonly leftBehind: string
}

/** Every line fits into 80 columns. */
export function printReport(writer: TextWriter, report: Report, context: ReportContext): void {
  const { expected, faults, tookMs, seed } = context
  const row = (
    name: string,
    figure: number | string,
    remark: string,
    style: Style = 'strong',
  ): void =>
    writer.line(
      `  ${name.padEnd(20)}`,
      {
        text: typeof figure === 'number' ? formatNumber(figure).padEnd(7) : figure.padEnd(7),
        style,
      },
      remark,
    )
  const mustBeZero = (name: string, count: number, remark: string): void =>
    row(name, count, remark, count === 0 ? 'good' : 'bad')

  row('pages crawled', report.pages, `of ${formatNumber(expected.pages)} on the site`)
  row('items saved', report.items, `of ${formatNumber(expected.businesses.size)} on the site`)
  row('errors of the site', report.errors500 + report.errors429, errorsText(report))
  row('time', humanizeDuration(tookMs), `on ${context.machine}, seed ${seed}`)
  writer.blank()
  row('kill -9', report.kills, recoveryText(report))
  row('deploys (SIGTERM)', report.deploys, deployText(faults))
  row('zombies (SIGSTOP)', report.zombies, zombieText(faults))
  writer.blank()
  mustBeZero('pages lost', report.pagesLost, 'each page of the site was saved')
  mustBeZero('pages doubled', report.pagesDoubled, 'by a ledger without a unique key')
  mustBeZero('items lost', report.itemsLost, 'each is there as the site shows it')
  mustBeZero('items doubled', report.itemsDoubled, 'however their addresses were spelled')
  row('late writes refused', report.lateWritesRefused, "the zombie's: none was saved")
  row('pages fetched twice', report.refetched, 'their worker died before it saved them')
  for (const reason of faults.skipped) writer.paragraph(`  Not injected: ${reason}.`)

  writer.blank()
  printVerdict(writer, report, context)
  writer.blank()
  writer.line('Inspect it:')
  const width = Math.max(...context.next.slice(1).map(([command]) => command.length))
  for (const [command, shows] of context.next) {
    const remark = shows === '' ? '' : `  # ${shows}`
    writer.paragraph(`  ${command.padEnd(shows === '' ? 0 : width)}`, {
      text: remark,
      style: 'dim',
    })
  }
  writer.paragraph({ text: context.leftBehind, style: 'dim' })
}

/** Printed last, so that it stays on the screen. */
function printVerdict(
  writer: TextWriter,
  report: Report,
  { machine, isBusy }: ReportContext,
): void {
  if (report.ok) {
    const deaths = report.kills > 0 ? `${plural(report.kills, 'worker')} killed with kill -9: ` : ''
    const verdict = `${deaths}no page lost, nothing doubled.`
    writer.paragraph({ text: verdict.charAt(0).toUpperCase() + verdict.slice(1), style: 'good' })
    return
  }
  writer.paragraph({ text: 'Something is wrong:', style: 'bad' })
  for (const problem of report.problems) writer.paragraph({ text: `  - ${problem}`, style: 'bad' })
  const isSlow = (report.slowestClaimableMs ?? 0) >= CLAIMABLE_MAX_MS
  if (isSlow && isBusy && report.problems.length === 1) {
    writer.paragraph(`This machine is busy (${machine}): try again when it is idle.`)
  }
}

function recoveryText({ slowestRecoveryMs, medianRecoveryMs, recoveries }: Report): string {
  if (slowestRecoveryMs === null) return ''
  const median = recoveries > 1 ? `, median ${medianRecoveryMs} ms` : ''
  return `taken up after ${slowestRecoveryMs} ms at most${median}`
}

function deployText({ deploys: [deploy] }: InjectedFaults): string {
  if (!deploy) return ''
  const back =
    deploy.backMs === null ? '' : `, back at work ${humanizeDuration(deploy.backMs)} later`
  return `all stopped in ${humanizeDuration(deploy.stoppedMs)}${back}`
}

function zombieText({ zombies: [zombie] }: InjectedFaults): string {
  return zombie ? `silent for ${humanizeDuration(zombie.silentMs)}, taken over, then continued` : ''
}

function errorsText({ errors500, errors429 }: Report): string {
  return `${errors500} × 500, ${errors429} × 429, all retried`
}
