import { closest } from '../../../model/closest.ts'
import { NotFound, UsageError } from '../../../model/errors.ts'
import { LIVE_STATUSES, type Counts, type Run } from '../../../model/run.ts'
import { TARGET_STATUSES } from '../../../model/target.ts'
import type { Store } from '../../../store/store.ts'
import { countsView, runView } from '../../view.ts'
import { defineCommand } from '../command.ts'
import { findRun } from '../find-run.ts'
import { argument, option } from '../option.ts'
import { printProgress, type Progress } from '../progress-text.ts'
import type { Group } from '../groups-text.ts'

const WAYS = ['group', 'page', 'status'] as const
const LIVE_MAX = 100
const TARGETS_BATCH = 500

export const progress = defineCommand({
  name: 'progress',
  summary: 'How far live runs are, by group, page or status.',
  examples: [
    'unstuck progress --watch',
    'unstuck progress --source directory --group CA TX',
    'unstuck progress 4f2a91bc --by page',
  ],
  args: { run: argument.optional('the run; without it all live runs, else the newest') },
  options: {
    source: option.text('SOURCE', 'the live run of this source, else its newest'),
    group: option.texts('GROUP', 'only targets of these groups'),
    by: option.choice(WAYS, 'group, page or status; by group where there are groups', undefined),
  },
  watch: true,

  async run({ args, options, database }) {
    const store = await database.openExisting()
    const now = await store.now()
    const runs =
      args.run === undefined
        ? await chosen(store, options.source)
        : [await findRun(store, args.run)]
    const found: Progress[] = []
    for (const { run, groups } of await withGroups(store, runs, options.group)) {
      const counts = options.group.length > 0 ? sum(groups.map(({ counts }) => counts)) : run.counts
      const by = options.by ?? (groups.some(({ group }) => group !== null) ? 'group' : 'status')
      const pages = by === 'page' ? await countPages(store, run, options.group) : []
      found.push({ run, by, groups, counts, pages })
    }
    return {
      data: { items: found.map(progressView), next: null },
      text: (paper) => found.forEach((one, i) => printProgress(paper, one, now, i)),
    }
  },
})

async function chosen(store: Store, source: string | undefined): Promise<Run[]> {
  const live: Run[] = []
  for (const status of LIVE_STATUSES)
    live.push(...(await store.runs({ source, status, limit: LIVE_MAX })).items)
  if (live.length > 0) return live
  const { items } = await store.runs({ source, limit: 1 })
  if (items.length === 0) {
    throw new NotFound(
      source === undefined ? 'run yet' : `run of ${source}`,
      '`unstuck runs` lists what there is.',
    )
  }
  return items
}

type WithGroups = { readonly run: Run; readonly groups: readonly Group[] }

/** Runs with the wanted groups. One that no run has is a mistake, and no empty table that looks like an answer. */
async function withGroups(
  store: Store,
  runs: readonly Run[],
  wanted: readonly string[],
): Promise<WithGroups[]> {
  const all: WithGroups[] = []
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
      const { items, next } = await store.targets(run.id, { group, after, limit: TARGETS_BATCH })
      for (const { page } of items) pages.set(page, (pages.get(page) ?? 0) + 1)
      if (next === null) break
      after = next
    }
  }
  return [...pages].map(([page, targets]) => ({ page, targets })).sort((a, b) => a.page - b.page)
}

function sum(all: readonly Counts[]): Counts {
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

function progressView({ run, by, groups, counts, pages }: Progress) {
  const rows = {
    group: () => groups.map(({ group, counts }) => ({ group, ...countsView(counts) })),
    status: () => TARGET_STATUSES.map((status) => ({ status, targets: counts.targets[status] })),
    page: () => pages,
  }[by]()
  return { run: runView(run), counts: countsView(counts), by, rows }
}
