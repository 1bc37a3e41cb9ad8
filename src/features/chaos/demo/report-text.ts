import { inWords } from '../../../core/model/time.ts'
import type { Paper } from '../../../lib/terminal/text-writer.ts'
import type { Ink } from '../../../lib/terminal/table.ts'
import { plural } from '../../../presenters/format.ts'
import type { Directory } from './directory.ts'
import { thousands } from './reporter.ts'
import { CLAIMABLE_MAX_MS, type Deeds, type Report } from './report.ts'

/** What the report says besides the figures. */
export type Surroundings = {
  readonly truth: Directory
  readonly deeds: Deeds
  readonly tookMs: number
  readonly seed: number
  /** The processors and how busy they were: slow recoveries may have their reason there. */
  readonly machine: string
  readonly isBusy: boolean
  /** Commands to go on with, and what each shows. */
  readonly next: readonly (readonly [command: string, shows: string])[]
  /** Where to look when something is wrong, and what is left to delete. */
  readonly leftBehind: string
}

/** Every line fits into 80 columns. */
export function printReport(paper: Paper, report: Report, around: Surroundings): void {
  const { truth, deeds, tookMs, seed } = around
  const row = (name: string, figure: number | string, remark: string, ink: Ink = 'strong'): void =>
    paper.line(
      `  ${name.padEnd(20)}`,
      { text: typeof figure === 'number' ? thousands(figure).padEnd(7) : figure.padEnd(7), ink },
      remark,
    )
  const mustBeZero = (name: string, count: number, remark: string): void =>
    row(name, count, remark, count === 0 ? 'good' : 'bad')

  row('pages crawled', report.pages, `of ${thousands(truth.pages)} on the site`)
  row('items saved', report.items, `of ${thousands(truth.businesses.size)} on the site`)
  row('errors of the site', report.errors500 + report.errors429, errorsText(report))
  row('time', inWords(tookMs), `on ${around.machine}, seed ${seed}`)
  paper.blank()
  row('kill -9', report.kills, recoveryText(report))
  row('deploys (SIGTERM)', report.deploys, deployText(deeds))
  row('zombies (SIGSTOP)', report.zombies, zombieText(deeds))
  paper.blank()
  mustBeZero('pages lost', report.pagesLost, 'each page of the site was saved')
  mustBeZero('pages doubled', report.pagesDoubled, 'by a ledger without a unique key')
  mustBeZero('items lost', report.itemsLost, 'each is there as the site shows it')
  mustBeZero('items doubled', report.itemsDoubled, 'however their addresses were spelled')
  row('late writes refused', report.lateWritesRefused, "the zombie's: none got through")
  row('pages fetched twice', report.refetched, 'rightly: in hand and unsaved when a worker died')
  for (const reason of deeds.skipped) paper.say(`  Not played: ${reason}.`)

  paper.blank()
  printVerdict(paper, report, around)
  paper.blank()
  paper.line('Look at it yourself:')
  const width = Math.max(...around.next.slice(1).map(([command]) => command.length))
  for (const [command, shows] of around.next) {
    const remark = shows === '' ? '' : `  # ${shows}`
    paper.say(`  ${command.padEnd(shows === '' ? 0 : width)}`, { text: remark, ink: 'dim' })
  }
  paper.say({ text: around.leftBehind, ink: 'dim' })
}

/** Last of the figures, so that it is still on the screen when the rest has scrolled away. */
function printVerdict(paper: Paper, report: Report, { machine, isBusy }: Surroundings): void {
  if (report.ok) {
    const deaths = report.kills > 0 ? `${plural(report.kills, 'worker')} killed with kill -9: ` : ''
    const verdict = `${deaths}no page lost, nothing doubled.`
    paper.say({ text: verdict.charAt(0).toUpperCase() + verdict.slice(1), ink: 'good' })
    return
  }
  paper.say({ text: 'Something is wrong:', ink: 'bad' })
  for (const problem of report.problems) paper.say({ text: `  - ${problem}`, ink: 'bad' })
  const isSlow = (report.slowestClaimableMs ?? 0) >= CLAIMABLE_MAX_MS
  if (isSlow && isBusy && report.problems.length === 1) {
    paper.say(`This machine has a lot else to do (${machine}): try again when it is calm.`)
  }
}

function recoveryText({ slowestRecoveryMs, medianRecoveryMs, recoveries }: Report): string {
  if (slowestRecoveryMs === null) return ''
  const median = recoveries > 1 ? `, median ${medianRecoveryMs} ms` : ''
  return `taken up after ${slowestRecoveryMs} ms at most${median}`
}

function deployText({ deploys: [deploy] }: Deeds): string {
  if (!deploy) return ''
  const back = deploy.backMs === null ? '' : `, back at work ${inWords(deploy.backMs)} later`
  return `all stopped in ${inWords(deploy.stoppedMs)}${back}`
}

function zombieText({ zombies: [zombie] }: Deeds): string {
  return zombie ? `silent for ${inWords(zombie.silentMs)}, taken over, then woken up` : ''
}

function errorsText({ errors500, errors429 }: Report): string {
  return `${errors500} × 500, ${errors429} × 429, all tried again`
}
