import { closest } from '../core/model/closest.ts'
import { UsageError } from '../core/model/errors.ts'
import { countTargets, type Counts, type Run } from '../core/model/run.ts'
import { runName } from '../core/model/traits.ts'
import { TARGET_STATUSES } from '../core/model/target.ts'
import type { Millis } from '../core/model/time.ts'
import type { Store } from '../core/store/store.ts'
import {
  right,
  left,
  flex,
  omittedRows,
  type Cell,
  type Section,
  type Sentence,
  type Table,
  makeTable,
} from '../lib/text/sentence.ts'
import {
  formatAgo,
  formatEta,
  formatRunStatus,
  formatTargetStatus,
  percent,
  plural,
  barOf,
  formatDoneOfTotal,
  formatShareDone,
  howFar,
  progressBar,
  knownTime,
} from './format.ts'
import { paceOf, recentSamples, roundRate } from './pace.ts'
import type { PresentedList } from './presented.ts'
import type { Pace } from './records.ts'
import { countsView, runView } from './view.ts'

export const PROGRESS_BY = ['group', 'page', 'status'] as const

/** How far a run is. */
export type Progress = {
  readonly run: Run
  readonly by: (typeof PROGRESS_BY)[number]
  readonly groups: readonly GroupProgress[]
  /** Of the selected groups, or of the whole run. */
  readonly counts: Counts
  readonly pages: readonly { readonly page: number; readonly targets: number }[]
  /** Of a running run, as `status` and the dashboard have it; null: it is not running, or not known yet. */
  readonly pace: Pace | null
}

type GroupProgress = { readonly group: string | null; readonly counts: Counts }

const TARGETS_BATCH_SIZE = 500

/** Progress of these runs: by group where there are groups, unless another way is given. */
export async function measureProgress(
  store: Store,
  runs: readonly Run[],
  { groups: wanted = [], by }: { groups?: readonly string[]; by?: Progress['by'] | undefined },
): Promise<Progress[]> {
  const found: Progress[] = []
  const now = await store.now()
  const samples = await recentSamples(store, now)
  for (const { run, groups } of await loadGroups(store, runs, wanted)) {
    const counts = wanted.length > 0 ? sumCounts(groups.map(({ counts }) => counts)) : run.counts
    const grouping = by ?? (groups.some(({ group }) => group !== null) ? 'group' : 'status')
    const pages = grouping === 'page' ? await countPages(store, run, wanted) : []
    found.push({ run, by: grouping, groups, counts, pages, pace: paceOf(samples, run, now) })
  }
  return found
}

/** `progress` of these runs. */
export function presentProgress(
  all: readonly Progress[],
  now: Millis,
): PresentedList<ReturnType<typeof progressView>> {
  return {
    view: { items: all.map(progressView), next: null },
    sections: all.flatMap((one) => progressSections(one, now)),
  }
}

function progressView({ run, by, groups, counts, pages }: Progress) {
  const rows = {
    group: () => groups.map(({ group, counts }) => ({ group, ...countsView(counts, run.traits) })),
    status: () => TARGET_STATUSES.map((status) => ({ status, targets: counts.targets[status] })),
    page: () => [...pages],
  }[by]()
  return { run: runView(run), counts: countsView(counts, run.traits), by, rows }
}

function progressSections(progress: Progress, now: Millis): Section[] {
  const { run, by, counts, pages } = progress
  const title: Sentence = [
    { text: run.source, style: 'strong' },
    ` ${runName(run)}, `,
    formatRunStatus(run.status),
    `, last activity ${formatAgo(knownTime(run, run.lastActivityAt), now)}`,
  ]
  const rows: (readonly [string, number])[] =
    by === 'status'
      ? TARGET_STATUSES.map((status) => [formatTargetStatus(status).text, counts.targets[status]])
      : pages.map(({ page, targets }) => [String(page), targets])
  return [
    { heading: null, sentences: [title, [headline(progress)]] },
    by === 'group'
      ? groupsSection(null, progress, Infinity)
      : {
          heading: null,
          table: sharesTable(by === 'status' ? 'STATUS' : 'AT PAGE', rows),
          sentences: [],
        },
  ]
}

function headline({ run, counts, pace }: Progress): string {
  const view = countsView(counts, run.traits)
  // Groups get targets as long as the run does.
  const far = {
    ...(counts === run.counts ? howFar(run) : view),
    planned: run.plannedAt !== null,
    kind: run.kind,
  }
  const parts = [
    `${barOf(far)} ${formatDoneOfTotal(far)}, ${formatShareDone(far)}`,
    ...(view.pages === null ? [] : [plural(view.pages, 'page')]),
    plural(view.extracted, 'item'),
  ]
  // The pace of some groups is not known.
  if (counts === run.counts) parts.push(...rates(run, pace))
  return parts.join(', ')
}

/** Of a running run the pace of the last minutes, of an ended one the mean. */
function rates({ counts, startedAt, finishedAt }: Run, pace: Pace | null): string[] {
  const ranMs = finishedAt === null || startedAt === null ? 0 : finishedAt - startedAt
  const mean = ranMs > 0 && counts.pages > 0 ? (counts.pages * 60_000) / ranMs : null
  // A wrapped command may report targets alone.
  const rate = counts.pages > 0 ? (pace?.pagesPerMinute ?? mean) : null
  const eta = pace?.etaSeconds ? [`about ${formatEta(pace.etaSeconds)} left`] : []
  return [...(rate === null ? [] : [`${roundRate(rate)} pages/min`]), ...eta]
}

function sharesTable(header: string, rows: readonly (readonly [string, number])[]): Table {
  const total = rows.reduce((sum, [, targets]) => sum + targets, 0)
  return makeTable(rows, [
    left(header, ([name]) => name),
    right('TARGETS', ([, targets]) => String(targets)),
    left('', ([, targets]) => progressBar(targets, total)),
    right('SHARE', ([, targets]) => percent(targets, total)),
  ])
}

/** Groups as a table: those with failures first, then the largest. */
export function groupsSection(
  heading: string | null,
  { run, groups }: Pick<Progress, 'run' | 'groups'>,
  max: number,
): Section {
  const failures = ({ counts: { targets } }: GroupProgress): number =>
    targets.failed + targets.parked + targets.stuck
  const views = groups
    .toSorted(
      (a, b) => failures(b) - failures(a) || countTargets(b.counts) - countTargets(a.counts),
    )
    .slice(0, max)
    .map(({ group, counts }) => ({ group, ...countsView(counts, run.traits) }))
  const failureCell = (count: number): Cell => ({
    text: String(count),
    style: count > 0 ? 'bad' : 'dim',
  })
  return {
    heading,
    table: makeTable(views, [
      flex('GROUP', ({ group }) => group ?? '(none)'),
      right('DONE', ({ done, total }) => `${done}/${total}`),
      left('', ({ done, total }) => progressBar(done, total), 2),
      right('IN PROGRESS', (view) => String(view.in_progress), 4),
      right('FAILED', ({ failed }) => failureCell(failed)),
      right('PARKED', ({ parked }) => failureCell(parked)),
      right('STUCK', ({ stuck }) => failureCell(stuck), 1),
      right('PAGES', ({ pages }) => String(pages ?? '–'), 5),
      right('ITEMS', ({ extracted }) => String(extracted), 3),
    ]),
    sentences: omittedRows(groups, '`unstuck progress --by group` lists all groups', max),
  }
}

type RunWithGroups = { readonly run: Run; readonly groups: readonly GroupProgress[] }

/**
 * Returns the runs with the selected groups. Throws for a group that no run has, instead of returning an empty
 * table.
 */
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
    errors: total((counts) => counts.errors),
    refused: total((counts) => counts.refused),
  }
}
