import { shortId } from '../core/model/id.ts'
import type { Millis } from '../core/model/time.ts'
import type { Assessment } from '../core/recovery/assess.ts'
import type { HeldTarget } from '../core/store/store.ts'
import type { Section, Sentence } from '../lib/text/sentence.ts'
import {
  formatAge,
  formatAgo,
  formatLiveness,
  formatProcess,
  formatProcessCell,
  plural,
} from './format.ts'
import type { PresentedList } from './presented.ts'
import type { Worker as WorkerView } from './records.ts'
import { workerView } from './view.ts'

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
  const items = all.filter(({ lastHeartbeatAt }) => now - Date.parse(lastHeartbeatAt) > olderThanMs)
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

function workersSection(items: readonly WorkerView[], now: number): Section {
  return {
    heading: null,
    table: {
      columns: [
        { header: 'WORKER' },
        { header: 'PROCESS', flex: true },
        { header: 'LIVENESS' },
        { header: 'TARGETS', align: 'right', optional: 1 },
        { header: 'UP', align: 'right', optional: 2 },
        { header: 'HEARTBEAT', align: 'right' },
      ],
      rows: items.map((worker) => [
        shortId(worker.id),
        formatProcessCell(worker),
        formatLiveness(worker.liveness),
        String(worker.targets),
        formatAge(now - Date.parse(worker.startedAt)),
        formatAgo(Date.parse(worker.lastHeartbeatAt), now),
      ]),
    },
    sentences: [],
  }
}

function doubtfulSections(items: readonly WorkerView[]): Section[] {
  const sentences = items
    .filter(({ liveness }) => liveness !== 'present')
    .map(({ id, liveness, because }): Sentence => [`${shortId(id)} ${liveness}: ${because}.`])
  return sentences.length > 0 ? [{ heading: 'Why', sentences }] : []
}

/** One worker and the targets that it holds. */
export function workerSections(
  worker: WorkerView,
  claimed: readonly HeldTarget[],
  now: Millis,
): Section[] {
  const { id, source, liveness, because, startedAt } = worker
  const started = `It started ${formatAgo(Date.parse(startedAt), now)}. Its id is ${id}.`
  return [
    {
      heading: `Worker ${shortId(id)}`,
      sentences: [
        [`Source ${source}, ${formatProcess(worker)}: `, formatLiveness(liveness), '.'],
        [`${because.charAt(0).toUpperCase()}${because.slice(1)}.`],
        [{ text: started, style: 'dim' }],
      ],
    },
    claimed.length === 0
      ? { heading: null, sentences: [['It holds no target.']] }
      : {
          heading: `Holds ${plural(claimed.length, 'target')}`,
          table: {
            columns: [
              { header: 'TARGET' },
              { header: 'SOURCE', flex: true, optional: 2 },
              { header: 'KEY', flex: true },
              { header: 'PAGE', align: 'right' },
              { header: 'ACTIVITY', align: 'right', optional: 1 },
            ],
            rows: claimed.map(({ target, run }) => [
              shortId(target.id),
              run.source,
              target.key,
              target.pageTarget === null ? `${target.page}` : `${target.page}/${target.pageTarget}`,
              formatAgo(target.lastActivityAt, now),
            ]),
          },
          sentences: [],
        },
  ]
}
