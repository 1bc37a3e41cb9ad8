import type { RunId } from '../../../core/model/id.ts'
import type { SavedItem } from '../../items/store/store.ts'
import type { Run } from '../../../core/model/run.ts'
import { humanizeDuration } from '../../../core/model/time.ts'
import type { Store } from '../../../core/store/store.ts'
import type { TextWriter } from '../../../lib/terminal/text-writer.ts'
import { plural } from '../../../presenters/format.ts'
import { compare } from '../compare.ts'
import type { Ledger, LedgerRow } from '../ledger.ts'
import { readItems } from '../outcome.ts'
import { formatNumber } from '../progress.ts'
import { recoveryTimes } from '../report.ts'
import { printProblems, printRows, printZeroRows, reclaimedText } from '../report-text.ts'
import { makeProblem, type Problem } from '../trial.ts'
import type { Scenario } from './scenario.ts'
import type { Directory, SiteStats } from './site.ts'

/** What the database holds after the run. */
export type SavedResults = {
  readonly run: Run
  readonly ledger: readonly LedgerRow[]
  readonly items: readonly Pick<SavedItem, 'key' | 'data'>[]
}

/** The injected faults, and how many were requested. */
export type InjectedFaults = Pick<
  Scenario,
  'killsAsked' | 'kills' | 'deploys' | 'zombies' | 'skipped'
>

/** A target must be claimable sooner than this after a kill (P8). */
const CLAIMABLE_MAX_MS = 1_000

/** Reads what the database holds after the run. */
export async function readResults(
  store: Store,
  ledger: Ledger,
  run: RunId,
  source: string,
): Promise<SavedResults> {
  const items = await readItems(store, source)
  return { run: (await store.run(run))!, ledger: await ledger.rows(), items }
}

/** The shape of `--json`. It only grows. */
export type Report = ReturnType<typeof makeReport>

/** Compares the result with the site. Reads only its arguments. */
export function makeReport(
  expected: Directory,
  results: SavedResults,
  faults: InjectedFaults,
  stats: SiteStats,
) {
  const found = compareWithSite(expected, results)
  const recovered = faults.kills.flatMap((kill) => kill.recoveries)
  const claimable = recovered.map(({ claimableMs }) => claimableMs)
  const figures = {
    pages: results.run.counts.pages,
    items: results.items.length,
    kills: faults.kills.length,
    lost: found.pagesLost + found.itemsLost,
    doubled: found.pagesDoubled + found.itemsDoubled,
    refetched: stats.refetched,
    lateWritesRefused: results.run.counts.refused,
    /** Until a worker had claimed the target; null when no kill left one. */
    ...recoveryTimes(recovered.map(({ reclaimedMs }) => reclaimedMs)),
    /** Until it could be claimed, which is the guarantee; the worker that claims it may still be starting. */
    slowestClaimableMs: claimable.length > 0 ? Math.max(...claimable) : null,
    recoveries: recovered.length,
    ...found,
    deploys: faults.deploys.length,
    zombies: faults.zombies.length,
    errors500: stats.errors500,
    errors429: stats.errors429,
    runStatus: results.run.status,
    skipped: faults.skipped,
  }
  const problems = findProblems(expected, results, faults, figures)
  /** `problems`: what is wrong; empty when all is well. */
  return { ...figures, ok: problems.length === 0, problems }
}

/**
 * The site is the reference, and the ledger is the output: one line per page. A lost page was never committed. Each row
 * beyond the first for a page, or for no page of the site, is doubled.
 */
export function compareWithSite({ targets, businesses, pages }: Directory, results: SavedResults) {
  const found = compare(
    {
      ...EMPTY,
      items: Array.from(businesses, ([key, data]) => ({ source: '', key, data })),
      output: targets.flatMap(({ key, pages }) => pages.map((_, index) => `${key}#${index + 1}`)),
    },
    {
      ...EMPTY,
      items: results.items.map(({ key, data }) => ({ source: '', key, data })),
      output: results.ledger.map(({ target, page }) => `${target}#${page}`),
    },
    { ignoreData: false },
  )
  const pagesLost = found.outputLost.length
  return {
    pagesLost,
    pagesDoubled: results.ledger.length - (pages - pagesLost),
    itemsLost: found.itemsLost.length + found.itemsDifferent.length,
    itemsDoubled: found.itemsUnexpected.length,
  }
}

const EMPTY = { runs: [], targets: [] }

function findProblems(
  expected: Directory,
  { run, ledger }: SavedResults,
  faults: InjectedFaults,
  figures: Omit<Report, 'ok' | 'problems'>,
): Problem[] {
  const { lost, doubled, pages, kills, slowestClaimableMs, lateWritesRefused } = figures
  const { pagesLost, itemsLost, pagesDoubled, itemsDoubled } = figures
  const count = (pages: number, items: number): string =>
    `${plural(pages, 'page')}, ${plural(items, 'item')}`
  const { done } = run.counts.targets
  const targets = expected.targets.length
  const found: readonly [isWrong: boolean, what: string, message: string, hint?: string][] = [
    [run.status !== 'succeeded', 'run-unfinished', `The run ended as ${run.status}.`],
    [lost > 0, 'lost', `Missing or wrong: ${count(pagesLost, itemsLost)}.`],
    [doubled > 0, 'doubled', `Saved more than once: ${count(pagesDoubled, itemsDoubled)}.`],
    [
      pages !== ledger.length,
      'counters',
      `The run's counters have ${pages} pages, its ledger ${ledger.length}.`,
    ],
    [done !== targets, 'targets-unfinished', `${done} of ${targets} targets are done.`],
    [
      kills < faults.killsAsked,
      'few-kills',
      `The run was over after ${kills} of ${faults.killsAsked} kills.`,
      'More --sections make it longer.',
    ],
    [
      (slowestClaimableMs ?? 0) >= CLAIMABLE_MAX_MS,
      'slow-recovery',
      `A target could be claimed again only ${slowestClaimableMs} ms after a kill.`,
      'On a busy machine, try again when it is idle.',
    ],
    [
      faults.zombies.some(({ isLateWriteSaved }) => isLateWriteSaved),
      'late-write-saved',
      'A page was saved with a claim that was lost.',
    ],
    [
      faults.zombies.some(({ refused }) => refused === 0 || lateWritesRefused === 0),
      'no-late-write',
      'The zombie continued, and no late write was refused.',
    ],
  ]
  return found.flatMap(([isWrong, ...problem]) => (isWrong ? [makeProblem(...problem)] : []))
}

/** What the report prints besides the figures. */
export type ReportContext = {
  readonly expected: Directory
  readonly faults: InjectedFaults
  readonly tookMs: number
  readonly seed: number
  /** Processors and load: a busy machine recovers more slowly. */
  readonly machine: string
  /** Commands to continue with, and what each shows. */
  readonly next: readonly (readonly [command: string, shows: string])[]
  /** What is left to inspect and delete. */
  readonly leftBehind: string
}

/** Prints the report. Every line fits into 80 columns. */
export function printReport(writer: TextWriter, report: Report, context: ReportContext): void {
  const { expected, faults, tookMs, seed, machine } = context
  const errors = `${report.errors500} × 500, ${report.errors429} × 429, all retried`
  printRows(writer, [
    ['pages crawled', report.pages, `of ${formatNumber(expected.pages)} on the site`],
    ['items saved', report.items, `of ${formatNumber(expected.businesses.size)} on the site`],
    ['errors of the site', report.errors500 + report.errors429, errors],
    ['time', humanizeDuration(tookMs), `on ${machine}, seed ${seed}`],
  ])
  writer.blank()
  printRows(writer, [
    ['kill -9', report.kills, reclaimedText(report)],
    ['deploys (SIGTERM)', report.deploys, deployText(faults)],
    ['zombies (SIGSTOP)', report.zombies, zombieText(faults)],
  ])
  writer.blank()
  printZeroRows(writer, [
    ['pages lost', report.pagesLost, 'on the site, but not saved'],
    ['pages doubled', report.pagesDoubled, 'saved twice, in a table without a unique key'],
    ['items lost', report.itemsLost, 'missing, or with other data than the site'],
    ['items doubled', report.itemsDoubled, 'saved under two spellings of their address'],
  ])
  printRows(writer, [
    ['late writes refused', report.lateWritesRefused, 'by workers that had lost their claim'],
    ['pages fetched twice', report.refetched, 'because a worker died before it saved them'],
  ])
  for (const reason of faults.skipped) writer.paragraph(`  Not injected: ${reason}.`)

  writer.blank()
  if (report.ok) {
    const killed = `${plural(report.kills, 'worker')} killed with kill -9: no page lost`
    const text = `${report.kills > 0 ? killed : 'No page lost'}, nothing doubled.`
    writer.paragraph({ text, style: 'good' })
  } else printProblems(writer, report.problems)
  writer.blank()
  writer.line('Inspect it:')
  const width = Math.max(...context.next.slice(1).map(([command]) => command.length))
  for (const [command, shows] of context.next) {
    const note = shows === '' ? '' : `  # ${shows}`
    writer.paragraph(`  ${command.padEnd(shows === '' ? 0 : width)}`, {
      text: note,
      style: 'dim',
    })
  }
  writer.paragraph({ text: context.leftBehind, style: 'dim' })
}

function deployText({ deploys: [deploy] }: InjectedFaults): string {
  if (!deploy) return ''
  const { stoppedMs, backMs } = deploy
  const back = backMs === null ? '' : `, back at work ${humanizeDuration(backMs)} later`
  return `all stopped in ${humanizeDuration(stoppedMs)}${back}`
}

function zombieText({ zombies: [zombie] }: InjectedFaults): string {
  return zombie ? `silent for ${humanizeDuration(zombie.silentMs)}, taken over, then continued` : ''
}
