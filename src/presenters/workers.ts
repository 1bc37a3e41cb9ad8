import { shortId } from '../core/model/id.ts'
import type { Millis } from '../core/model/time.ts'
import type { Assessment } from '../core/recovery/assess.ts'
import type { HeldTarget } from '../core/store/store.ts'
import {
  flex,
  left,
  longest,
  makeTable,
  right,
  type ColumnOf,
  type Section,
  type Sentence,
} from '../lib/text/sentence.ts'
import {
  formatAge,
  formatAgo,
  formatLiveness,
  formatProcess,
  formatProcessCell,
  parseTime,
  sentenceCase,
  workerName,
  workerReason,
  plural,
  targetRef,
} from './format.ts'
import type { PresentedList } from './presented.ts'
import type { Worker as WorkerView } from './records.ts'
import { formatPage, workerView } from './view.ts'

/** Workers that have not ended. A process without a source that holds nothing is left out, such as a server. */
export function workerViews({ workers }: Pick<Assessment, 'workers'>): WorkerView[] {
  return workers
    .filter(({ worker, targets }) => worker.source !== '' || targets > 0)
    .map(workerView)
}

/** `workers`: all of them, or those without a heartbeat for longer than `olderThanMs`. Null: there is no database yet. */
export function presentWorkers(
  assessment: Assessment | null,
  olderThanMs = -Infinity,
): PresentedList<WorkerView> {
  const { now, workers } = assessment ?? { now: 0, workers: [] }
  const all = workerViews({ workers })
  const items = all.filter(
    ({ lastHeartbeatAt: at }) => (at === null ? -1 : now - Date.parse(at)) > olderThanMs,
  )
  const empty = all.length === 0 ? NO_WORKERS : 'No worker is that old.'
  return {
    view: { items, next: null },
    sections:
      items.length === 0
        ? [{ heading: null, sentences: [[empty]] }]
        : [workersSection(items, now), ...doubtfulSections(items)],
  }
}

export const NO_WORKERS = 'No worker runs. Start one with `unstuck work crawl.ts`.'

/** A row of your own goes by its own id, which is not cut: the id of its worker is made up. */
export function workerColumn(workers: readonly WorkerView[]): ColumnOf<WorkerView> {
  // With room for the ellipsis.
  const rows = workers.flatMap(({ label }) =>
    label === null ? [] : `${label.split(' of ', 1)[0]} …`,
  )
  return { ...flex('WORKER', workerName), min: longest(rows) }
}

/** Empty if no process is known. */
export function processColumns(workers: readonly WorkerView[]): ColumnOf<WorkerView>[] {
  if (workers.every(({ label }) => label !== null)) return []
  return [flex('PROCESS', (one) => (one.label === null ? formatProcessCell(one) : ''), 3)]
}

function workersSection(items: readonly WorkerView[], now: number): Section {
  return {
    heading: null,
    table: makeTable(items, [
      workerColumn(items),
      ...processColumns(items),
      left('LIVENESS', ({ liveness }) => formatLiveness(liveness)),
      right('TARGETS', ({ targets }) => String(targets), 1),
      right(
        'UP',
        ({ startedAt }) => (startedAt === null ? '–' : formatAge(now - Date.parse(startedAt))),
        2,
      ),
      right('HEARTBEAT', ({ lastHeartbeatAt }) => formatAgo(parseTime(lastHeartbeatAt), now)),
    ]),
    sentences: [],
  }
}

function doubtfulSections(items: readonly WorkerView[]): Section[] {
  const sentences = items
    .filter(({ liveness }) => liveness !== 'present')
    .map((worker): Sentence => [`${workerReason(worker)}.`])
  return sentences.length > 0 ? [{ heading: 'Why', sentences }] : []
}

/** One worker and the targets that it holds. */
export function workerSections(
  worker: WorkerView,
  claimed: readonly HeldTarget[],
  now: Millis,
): Section[] {
  const { id, source, liveness, because, startedAt } = worker
  const started = startedAt === null ? '' : `It started ${formatAgo(Date.parse(startedAt), now)}. `
  return [
    {
      heading: sentenceCase(worker.label ?? `worker ${shortId(id)}`),
      sentences: [
        [`Source ${source}, ${formatProcess(worker)}: `, formatLiveness(liveness), '.'],
        [`${because.charAt(0).toUpperCase()}${because.slice(1)}.`],
        [{ text: `${started}Its id is ${id}.`, style: 'dim' }],
      ],
    },
    claimed.length === 0
      ? { heading: null, sentences: [['It holds no target.']] }
      : {
          heading: `Holds ${plural(claimed.length, 'target')}`,
          table: makeTable(claimed, [
            left('TARGET', ({ target }) => targetRef(target)),
            flex('SOURCE', ({ run }) => run.source, 2),
            flex('KEY', ({ target }) => target.key),
            right('PAGE', ({ target }) => formatPage(target, '/')),
            right('ACTIVITY', ({ target }) => formatAgo(target.lastActivityAt, now), 1),
          ]),
          sentences: [],
        },
  ]
}
