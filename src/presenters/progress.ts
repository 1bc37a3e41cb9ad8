import { closest } from '../core/model/closest.ts'
import { UsageError } from '../core/model/errors.ts'
import type { Counts, Run } from '../core/model/run.ts'
import { TARGET_STATUSES } from '../core/model/target.ts'
import type { Store } from '../core/store/store.ts'
import { countsView, runView } from './view.ts'

export const PROGRESS_BY = ['group', 'page', 'status'] as const

/** How far a run is. */
export type Progress = {
  readonly run: Run
  readonly by: (typeof PROGRESS_BY)[number]
  readonly groups: readonly GroupProgress[]
  /** Of the groups that were asked for, or of the whole run. */
  readonly counts: Counts
  readonly pages: readonly { readonly page: number; readonly targets: number }[]
}

export type GroupProgress = { readonly group: string | null; readonly counts: Counts }

const TARGETS_BATCH_SIZE = 500

/** How far these runs are: by group where there are groups, unless another way is asked for. */
export async function measureProgress(
  store: Store,
  runs: readonly Run[],
  { groups: wanted = [], by }: { groups?: readonly string[]; by?: Progress['by'] | undefined },
): Promise<Progress[]> {
  const found: Progress[] = []
  for (const { run, groups } of await loadGroups(store, runs, wanted)) {
    const counts = wanted.length > 0 ? sumCounts(groups.map(({ counts }) => counts)) : run.counts
    const grouping = by ?? (groups.some(({ group }) => group !== null) ? 'group' : 'status')
    const pages = grouping === 'page' ? await countPages(store, run, wanted) : []
    found.push({ run, by: grouping, groups, counts, pages })
  }
  return found
}

/** What `progress` answers for one run. */
export function progressView({ run, by, groups, counts, pages }: Progress) {
  const rows = {
    group: () => groups.map(({ group, counts }) => ({ group, ...countsView(counts) })),
    status: () => TARGET_STATUSES.map((status) => ({ status, targets: counts.targets[status] })),
    page: () => [...pages],
  }[by]()
  return { run: runView(run), counts: countsView(counts), by, rows }
}

type RunWithGroups = { readonly run: Run; readonly groups: readonly GroupProgress[] }

/** Runs with the wanted groups. One that no run has is a mistake, and no empty table that looks like an answer. */
async function loadGroups(
  store: Store,
  runs: readonly Run[],
  wanted: readonly string[],
): Promise<RunWithGroups[]> {
  const all: RunWithGroups[] = []
  for (const run of runs) all.push({ run, groups: await store.countsByGroup(run.id) })
  if (wanted.length === 0) return all
  const names = all.flatMap(({ groups }) => groups.map(({ group }) => group ?? ''))
  for (const name of wanted.filter((name) => !names.includes(name))) {
    const hint = closest(name, names)
    throw new UsageError(
      `There is no group ${name}.${hint ? ` Did you mean ${hint}?` : ''} ` +
        '`unstuck progress --by group` lists them.',
    )
  }
  return all
    .map(({ run, groups }) => ({
      run,
      groups: groups.filter(({ group }) => wanted.includes(group ?? '')),
    }))
    .filter(({ groups }) => groups.length > 0)
}

async function countPages(
  store: Store,
  run: Run,
  groups: readonly string[],
): Promise<Progress['pages']> {
  if (groups.length === 0) return store.countsByPage(run.id)
  const pages = new Map<number, number>()
  for (const group of groups) {
    for (let after: string | undefined; ;) {
      const { items, next } = await store.targets(run.id, {
        group,
        after,
        limit: TARGETS_BATCH_SIZE,
      })
      for (const { page } of items) pages.set(page, (pages.get(page) ?? 0) + 1)
      if (next === null) break
      after = next
    }
  }
  return [...pages].map(([page, targets]) => ({ page, targets })).sort((a, b) => a.page - b.page)
}

function sumCounts(all: readonly Counts[]): Counts {
  const total = (read: (counts: Counts) => number): number =>
    all.reduce((n, counts) => n + read(counts), 0)
  const targets = TARGET_STATUSES.map((status) => [
    status,
    total((counts) => counts.targets[status]),
  ])
  return {
    targets: Object.fromEntries(targets),
    pages: total((counts) => counts.pages),
    itemsNew: total((counts) => counts.itemsNew),
    itemsUpdated: total((counts) => counts.itemsUpdated),
    itemsUnchanged: total((counts) => counts.itemsUnchanged),
    skipped: total((counts) => counts.skipped),
    refused: total((counts) => counts.refused),
  }
}
