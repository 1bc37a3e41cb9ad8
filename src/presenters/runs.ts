import type { Health } from '../core/decide/health.ts'
import { isLive, type Run } from '../core/model/run.ts'
import { humanizeDuration, type Millis } from '../core/model/time.ts'
import { assess, type AssessContext } from '../core/recovery/assess.ts'
import type { RunFilter, Store } from '../core/store/store.ts'
import { right, left, flex, type Sentence, type Table, makeTable } from '../lib/text/sentence.ts'
import { similarSource } from './find.ts'
import type { PresentedList } from './presented.ts'
import {
  formatAgo,
  formatDoneOfTotal,
  howFar,
  formatRunStatus,
  formatRunId,
  formatSource,
  knownPages,
  knownTime,
} from './format.ts'
import type { ListedRun } from './records.ts'
import { runView } from './view.ts'
import { paceOf, recentSamples, type RecentSamples } from './pace.ts'

export function listedRunView(
  run: Run,
  health: Health | null,
  samples: RecentSamples,
  now: Millis,
): ListedRun {
  return {
    ...runView(run),
    pages: knownPages(run.counts, run.traits),
    planned: run.plannedAt !== null,
    kind: run.kind,
    health: health?.state ?? null,
    severity: health?.severity ?? null,
    because: health?.because ?? null,
    pace: paceOf(samples, run, now),
  }
}

export type RunList = {
  readonly runs: readonly Run[]
  readonly items: ListedRun[]
  readonly next: string | null
  readonly now: Millis
  /** What is printed for an empty list. */
  readonly none: string
}

const NO_RUNS = 'No runs. `unstuck work crawl.ts` starts one.'

/** Describes an empty list: a mistyped source looks as if nothing had run. */
async function describeNone(store: Store, filter: RunFilter): Promise<string> {
  const { source, statuses, search, createdSince, latestFailed, after } = filter
  const similar = source === undefined ? null : await similarSource(store, source)
  if (similar !== null) return `No run of ${source} matches; there is ${similar}.`
  const isFiltered = source ?? statuses ?? search ?? createdSince ?? latestFailed ?? after
  return isFiltered === undefined ? NO_RUNS : 'No run matches.'
}

/** Returns the runs that match, newest first. All live ones are assessed at once. */
export async function listRuns(context: AssessContext, filter: RunFilter): Promise<RunList> {
  const { store } = context
  const { items: runs, next } = await store.runs(filter)
  const none = runs.length === 0 ? await describeNone(store, filter) : NO_RUNS
  if (!runs.some(({ status }) => isLive(status))) {
    const now = await store.now()
    return {
      runs,
      items: runs.map((run) => listedRunView(run, null, new Map(), now)),
      next,
      now,
      none,
    }
  }
  const { runs: live, now } = await assess(context)
  const health = new Map(live.map((one) => [one.run.id, one.health]))
  const samples = await recentSamples(store, now)
  const items = runs.map((run) => listedRunView(run, healthFor(health, run), samples, now))
  return { runs, items, next, now, none }
}

const NOTHING: RunList = { runs: [], items: [], next: null, now: 0, none: NO_RUNS }

/** `runs`; null where there is no database yet. */
export function presentRuns(list: RunList | null): PresentedList<ListedRun> {
  const { runs, items, next, now, none } = list ?? NOTHING
  const more: Sentence = [{ text: `There are more: add \`--after ${next}\`.`, style: 'dim' }]
  return {
    view: { items, next },
    sections: [
      runs.length === 0
        ? { heading: null, sentences: [[none]] }
        : { heading: null, table: runsTable(runs, now), sentences: next === null ? [] : [more] },
    ],
  }
}

type WithRun = { readonly run: Run }

/** Columns that tables of runs share. */
export const RUN = {
  id: left('RUN', ({ run }: WithRun) => formatRunId(run.id, run.traits.origin)),
  source: flex('SOURCE', ({ run }: WithRun) => formatSource(run.source, run.traits.origin)),
  status: left('STATUS', ({ run }: WithRun) => formatRunStatus(run.status)),
  done: right('DONE', ({ run }: WithRun) => formatDoneOfTotal(howFar(run))),
  items: right('ITEMS', ({ run }: WithRun) => String(runView(run).extracted)),
}

function runsTable(runs: readonly Run[], now: Millis): Table {
  return makeTable(
    runs.map((run) => ({ run })),
    [
      RUN.id,
      RUN.source,
      { ...RUN.status, flex: true },
      RUN.done,
      { ...RUN.items, optional: 1 },
      right('CREATED', ({ run }) => formatAgo(knownTime(run, run.createdAt), now), 2),
      right(
        'TOOK',
        ({ run }) =>
          run.startedAt === null ? '–' : humanizeDuration((run.finishedAt ?? now) - run.startedAt),
        3,
      ),
    ],
  )
}

/** The run may have ended between the two reads. */
function healthFor(health: ReadonlyMap<string, Health>, { id, status }: Run): Health | null {
  return isLive(status) ? (health.get(id) ?? null) : null
}
