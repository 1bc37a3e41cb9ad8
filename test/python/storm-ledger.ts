import { isDeepStrictEqual } from 'node:util'
import type { RunId } from '../../src/core/model/id.ts'
import type { Run } from '../../src/core/model/run.ts'
import type { Target } from '../../src/core/model/target.ts'
import type { Store } from '../../src/core/store/store.ts'
import { compare, type ItemFacts } from '../../src/features/chaos/compare.ts'
import type { Directory } from '../../src/features/chaos/demo/site.ts'
import { readItems } from '../../src/features/chaos/outcome.ts'
import { unstuck } from '../../src/testing/unstuck-cli.ts'
import type { ProcessTestContext } from '../processes/harness.ts'
import { SOURCE } from './storm-supervisors.ts'
import type { Zombie } from './storm-faults.ts'

/** A command at work on a page, before it asked the site for it. */
type VisitMark = {
  readonly pid: number
  readonly key: string
  readonly page: number
  readonly visit: string
}

/** Returns every visit of a page, in order: saved, refused or cut off by a kill. */
export function visitsOf(ctx: ProcessTestContext): VisitMark[] {
  return ctx.marks('visit') as unknown as VisitMark[]
}

/** A page that was saved, by one visit. */
export type LedgerRow = { readonly target: string; readonly page: number; readonly visit: string }

/** A group, and how far it is. */
type GroupRow = { readonly group: string; readonly extracted: number }

/** What a database holds after a crawl. */
export type Crawled = {
  readonly run: Run
  readonly targets: readonly Target[]
  /** The site's items. */
  readonly items: readonly ItemFacts[]
  /** Visits that were saved as items; none of a crawl in TypeScript. */
  readonly visits: readonly LedgerRow[]
  /** `unstuck progress`: the groups, and how far each is. */
  readonly groups: readonly GroupRow[]
}

export async function readCrawled(ctx: ProcessTestContext, run: RunId): Promise<Crawled> {
  const store = await ctx.store()
  const [targets, all] = await Promise.all([readTargets(store, run), readItems(store, SOURCE)])
  const isVisit = ({ key }: ItemFacts): boolean => key.startsWith('visit/')
  const visits = all.filter(isVisit).map(({ data }) => data as LedgerRow)
  return {
    run: (await store.run(run))!,
    targets,
    items: all.filter((item) => !isVisit(item)),
    visits,
    groups: withoutVisits(await readGroups(ctx), targets, visits),
  }
}

async function readTargets(store: Store, run: RunId): Promise<Target[]> {
  const { items } = await store.targets(run, { limit: 1_000 })
  return items.toSorted((a, b) => (a.key < b.key ? -1 : 1))
}

async function readGroups({ database, folder: cwd }: ProcessTestContext): Promise<GroupRow[]> {
  const env = { UNSTUCK_DB: database.url }
  const { stdout, stderr } = await unstuck(['progress', SOURCE, '--json'], { cwd, env })
  if (stderr !== '') throw new Error(stderr)
  return JSON.parse(stdout).items[0].rows
}

/** Returns the groups with the items of the site alone. */
function withoutVisits(
  groups: readonly GroupRow[],
  targets: readonly Target[],
  visits: readonly LedgerRow[],
): GroupRow[] {
  const groupOf = new Map(targets.map(({ key, group }) => [key, group]))
  return groups.map((row) => {
    const own = visits.filter(({ target }) => groupOf.get(target) === row.group)
    return { ...row, extracted: row.extracted - own.length }
  })
}

/** Rows that the commands wrote in the transactions of their pages, into a table without a key. */
export async function readLedger(ctx: ProcessTestContext): Promise<LedgerRow[]> {
  const rows = await ctx.database.raw('SELECT target, page, visit FROM storm_ledger')
  return rows.map(({ target, page, visit }) => ({
    target: String(target),
    page: Number(page),
    visit: String(visit),
  }))
}

/** Compares a ledger with the site. All lists are empty when each page was saved once, and by no late visit. */
export function checkLedger(
  { targets }: Directory,
  ledger: readonly LedgerRow[],
  zombies: readonly Pick<Zombie, 'lateVisits'>[],
) {
  const nothing = { runs: [], targets: [], items: [] }
  const pages = targets.flatMap(({ key, pages }) => pages.map((_, n) => `${key}#${n + 1}`))
  const saved = ledger.map(({ target, page }) => `${target}#${page}`)
  const found = compare(
    { ...nothing, output: pages },
    { ...nothing, output: saved },
    { ignoreData: false },
  )
  const late = new Set(zombies.flatMap(({ lateVisits }) => lateVisits))
  return {
    lost: found.outputLost,
    doubled: [...found.outputDoubled, ...found.outputUnexpected],
    savedLate: ledger.filter(({ visit }) => late.has(visit)),
  }
}

/** Returns what differs from the crawl in TypeScript: nothing when both are equal. */
export function differences(reference: Crawled, crawled: Crawled): unknown[] {
  const outcome = ({ run, targets, items }: Crawled) => ({
    runs: [{ ...run, pages: run.counts.pages, refused: 0 }],
    targets: targets.map(({ key, status, page }) => ({ source: SOURCE, key, status, page })),
    items,
    output: null,
  })
  const found = compare(outcome(reference), outcome(crawled), { ignoreData: false })
  const wrong: unknown[] = Object.entries(found).filter(([, one]) =>
    Array.isArray(one) ? one.length > 0 : one !== 0,
  )
  for (const [n, { key, group, pageTarget }] of reference.targets.entries()) {
    const { group: ownGroup, pageTarget: ownPageTarget } = crawled.targets[n] ?? {}
    if (group !== ownGroup || pageTarget !== ownPageTarget)
      wrong.push(`${key}: ${ownGroup}, ${ownPageTarget} pages expected`)
  }
  for (const [n, group] of reference.groups.entries()) {
    const own = crawled.groups[n]
    if (!isDeepStrictEqual(group, own)) wrong.push({ expected: group, found: own })
  }
  return wrong
}
