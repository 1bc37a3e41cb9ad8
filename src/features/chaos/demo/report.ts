import type { RunId } from '../../../core/model/id.ts'
import type { SavedItem } from '../../../core/model/item.ts'
import type { Run } from '../../../core/model/run.ts'
import type { Store } from '../../../core/store/store.ts'
import { compare } from '../compare.ts'
import type { Directory } from './directory.ts'
import type { Ledger, LedgerRow } from '../ledger.ts'
import { readItems } from '../outcome.ts'
import { median } from '../report.ts'
import type { SiteStats } from './site.ts'
import type { Deploy, Kill, Zombie } from './scenario.ts'

/** What the database holds after the run. */
export type SavedResults = {
  readonly run: Run
  readonly ledger: readonly LedgerRow[]
  readonly items: readonly Pick<SavedItem, 'key' | 'data'>[]
}

/** The injected faults, and how many were requested. */
export type InjectedFaults = {
  readonly killsAsked: number
  readonly kills: readonly Kill[]
  readonly deploys: readonly Deploy[]
  readonly zombies: readonly Zombie[]
  /** Faults that could not be injected, each with its reason. */
  readonly skipped: readonly string[]
}

/** The shape of `--json`. It only grows. */
export type Report = {
  readonly pages: number
  readonly items: number
  readonly kills: number
  readonly lost: number
  readonly doubled: number
  readonly refetched: number
  readonly lateWritesRefused: number
  /** Until a worker had claimed the target; null when no kill left one. */
  readonly slowestRecoveryMs: number | null
  readonly ok: boolean
  readonly medianRecoveryMs: number | null
  /** Until it could be claimed, which is the guarantee; the worker that claims it may still be starting. */
  readonly slowestClaimableMs: number | null
  readonly recoveries: number
  readonly pagesLost: number
  readonly itemsLost: number
  readonly pagesDoubled: number
  readonly itemsDoubled: number
  readonly deploys: number
  readonly zombies: number
  readonly errors500: number
  readonly errors429: number
  readonly runStatus: Run['status']
  readonly skipped: readonly string[]
  /** Why it is not ok; empty when it is. */
  readonly problems: readonly string[]
}

/** A target must be claimable sooner than this after a kill (P8). */
export const CLAIMABLE_MAX_MS = 1_000

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

/** Compares the result with the site. Reads only its arguments. */
export function makeReport(
  expected: Directory,
  results: SavedResults,
  faults: InjectedFaults,
  stats: SiteStats,
): Report {
  const found = compareWithSite(expected, results)
  const recovered = faults.kills.flatMap((kill) => kill.recoveries)
  const recoveries = recovered.map(({ takenUpMs }) => takenUpMs).sort((a, b) => a - b)
  const claimable = recovered.map(({ claimableMs }) => claimableMs)
  const figures = {
    pages: results.run.counts.pages,
    items: results.items.length,
    kills: faults.kills.length,
    lost: found.pagesLost + found.itemsLost,
    doubled: found.pagesDoubled + found.itemsDoubled,
    refetched: stats.refetched,
    lateWritesRefused: results.run.counts.refused,
    slowestRecoveryMs: recoveries.at(-1) ?? null,
    slowestClaimableMs: claimable.length > 0 ? Math.max(...claimable) : null,
  }
  const problems = findProblems(expected, results, faults, figures)
  return {
    ...figures,
    ok: problems.length === 0,
    medianRecoveryMs: median(recoveries),
    recoveries: recoveries.length,
    ...found,
    deploys: faults.deploys.length,
    zombies: faults.zombies.length,
    errors500: stats.errors500,
    errors429: stats.errors429,
    runStatus: results.run.status,
    skipped: faults.skipped,
    problems,
  }
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

type Figures = Pick<
  Report,
  'pages' | 'kills' | 'lost' | 'doubled' | 'lateWritesRefused' | 'slowestClaimableMs'
>

function findProblems(
  expected: Directory,
  results: SavedResults,
  faults: InjectedFaults,
  figures: Figures,
): string[] {
  const { lost, doubled, pages, kills, slowestClaimableMs, lateWritesRefused } = figures
  const { run, ledger } = results
  const problems: string[] = []
  if (run.status !== 'succeeded') problems.push(`the run ended as ${run.status}`)
  if (lost > 0) problems.push(`${lost} pages or items are missing or wrong`)
  if (doubled > 0) problems.push(`${doubled} pages or items were saved more than once`)
  if (pages !== ledger.length) {
    problems.push(`the run's counters have ${pages} pages, its ledger ${ledger.length}`)
  }
  if (expected.targets.length !== run.counts.targets.done) {
    problems.push(`${run.counts.targets.done} of ${expected.targets.length} targets are done`)
  }
  if (kills < faults.killsAsked) {
    problems.push(
      `the run was over after ${kills} of ${faults.killsAsked} kills; more --targets make it longer`,
    )
  }
  if (slowestClaimableMs !== null && slowestClaimableMs >= CLAIMABLE_MAX_MS) {
    problems.push(`a target could be claimed again only ${slowestClaimableMs} ms after a kill`)
  }
  if (faults.zombies.length > 0 && lateWritesRefused === 0) {
    problems.push('the zombie woke up, and no late write was refused')
  }
  return problems
}
