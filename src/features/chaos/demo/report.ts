import { isDeepStrictEqual } from 'node:util'
import type { SavedItem } from '../../../core/model/item.ts'
import type { Run } from '../../../core/model/run.ts'
import type { Directory } from './directory.ts'
import type { LedgerRow } from './ledger.ts'
import type { SiteStats } from './site.ts'
import type { Deploy, Kill, Zombie } from './scenario-context.ts'

/** What the database holds after the run. */
export type SavedResults = {
  readonly run: Run
  readonly ledger: readonly LedgerRow[]
  readonly items: readonly Pick<SavedItem, 'key' | 'data'>[]
}

/** What was done to the workers, and what was asked for. */
export type InjectedFaults = {
  readonly killsAsked: number
  readonly kills: readonly Kill[]
  readonly deploys: readonly Deploy[]
  readonly zombies: readonly Zombie[]
  /** Acts that could not be played, each with its reason. */
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
  /** Until somebody had the target; null when no kill left one behind. */
  readonly slowestRecoveryMs: number | null
  readonly ok: boolean
  readonly medianRecoveryMs: number | null
  /** Until anybody could have it, which is what is promised; who takes it up may still be starting. */
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

/** From it on, it took too long until a target could be claimed again (P8). */
export const CLAIMABLE_MAX_MS = 1_000

/** Holds what was found against the site's own truth. Reads only its arguments. */
export function makeReport(
  expected: Directory,
  results: SavedResults,
  faults: InjectedFaults,
  stats: SiteStats,
): Report {
  const pages = comparePages(expected, results.ledger)
  const items = compareItems(expected, results.items)
  const recovered = faults.kills.flatMap((kill) => kill.recoveries)
  const recoveries = recovered.map(({ takenUpMs }) => takenUpMs).sort((a, b) => a - b)
  const claimable = recovered.map(({ claimableMs }) => claimableMs)
  const figures = {
    pages: results.run.counts.pages,
    items: results.items.length,
    kills: faults.kills.length,
    lost: pages.lost + items.lost,
    doubled: pages.doubled + items.doubled,
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
    pagesLost: pages.lost,
    itemsLost: items.lost,
    pagesDoubled: pages.doubled,
    itemsDoubled: items.doubled,
    deploys: faults.deploys.length,
    zombies: faults.zombies.length,
    errors500: stats.errors500,
    errors429: stats.errors429,
    runStatus: results.run.status,
    skipped: faults.skipped,
    problems,
  }
}

function median(sorted: readonly number[]): number | null {
  const [low, high] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]]
  return low === undefined || high === undefined ? null : Math.round((low + high) / 2)
}

type Difference = { readonly lost: number; readonly doubled: number }

/** Lost: a page of the site that was never committed. Doubled: each row beyond one for a page, or for no page at all. */
function comparePages({ targets }: Directory, ledger: readonly LedgerRow[]): Difference {
  const missing = new Set(
    targets.flatMap(({ key, pages }) => pages.map((_, index) => `${key}#${index + 1}`)),
  )
  let doubled = 0
  for (const { target, page } of ledger) if (!missing.delete(`${target}#${page}`)) doubled++
  return { lost: missing.size, doubled }
}

/** Lost: a business that is not there as the site shows it. Doubled: an item that is no business, or one twice. */
function compareItems({ businesses }: Directory, items: SavedResults['items']): Difference {
  const missing = new Map(businesses)
  let lost = 0
  let doubled = 0
  for (const { key, data } of items) {
    const business = missing.get(key)
    if (!business) doubled++
    else if (!isDeepStrictEqual(business, data)) lost++
    missing.delete(key)
  }
  return { lost: lost + missing.size, doubled }
}

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
  if (doubled > 0) problems.push(`${doubled} pages or items are there more than once`)
  if (pages !== ledger.length) {
    problems.push(`the run's books say ${pages} pages, its ledger holds ${ledger.length}`)
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
