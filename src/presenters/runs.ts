import type { Health } from '../core/decide/health.ts'
import { isLive, type Run } from '../core/model/run.ts'
import { humanizeDuration, type Millis } from '../core/model/time.ts'
import { shortId } from '../core/model/id.ts'
import { assess, type AssessContext } from '../core/recovery/assess.ts'
import type { RunFilter } from '../core/store/store.ts'
import { right, left, flex, type Sentence, type Table, makeTable } from '../lib/text/sentence.ts'
import type { PresentedList } from './presented.ts'
import { formatAgo, formatDoneOfTotal, formatRunStatus, formatSource } from './format.ts'
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
    pages: run.counts.pages,
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
}

/** Returns the runs that match, newest first. All live ones are assessed at once. */
export async function listRuns(context: AssessContext, filter: RunFilter): Promise<RunList> {
  const { store } = context
  const { items: runs, next } = await store.runs(filter)
  if (!runs.some(({ status }) => isLive(status))) {
    const now = await store.now()
    return { runs, items: runs.map((run) => listedRunView(run, null, new Map(), now)), next, now }
  }
  const { runs: live, now } = await assess(context)
  const health = new Map(live.map((one) => [one.run.id, one.health]))
  const samples = await recentSamples(store, now)
  const items = runs.map((run) => listedRunView(run, healthFor(health, run), samples, now))
  return { runs, items, next, now }
}

/** `runs`; null where there is no database yet. */
export function presentRuns(list: RunList | null): PresentedList<ListedRun> {
  const { runs, items, next, now } = list ?? { runs: [], items: [], next: null, now: 0 }
  const more: Sentence = [{ text: `There are more: add \`--after ${next}\`.`, style: 'dim' }]
  return {
    view: { items, next },
    sections: [
      runs.length === 0
        ? { heading: null, sentences: [['No runs. `unstuck work crawl.ts` starts one.']] }
        : { heading: null, table: runsTable(runs, now), sentences: next === null ? [] : [more] },
    ],
  }
}

type WithRun = { readonly run: Run }

/** Columns that tables of runs share. */
export const RUN = {
  id: left('RUN', ({ run }: WithRun) => shortId(run.id)),
  source: flex('SOURCE', ({ run }: WithRun) => formatSource(run.source, run.traits.origin)),
  status: left('STATUS', ({ run }: WithRun) => formatRunStatus(run.status)),
  done: right('DONE', ({ run }: WithRun) => formatDoneOfTotal(run)),
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
      right('CREATED', ({ run }) => formatAgo(run.createdAt, now), 2),
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
