import type { WorkerId } from '../../../core/model/id.ts'
import { formatElapsed, formatNumber } from '../progress.ts'
import type { Snapshot } from './snapshot.ts'

/** What the demo did to a worker. */
export type WorkerMark = 'killed' | 'stopped' | 'leaving'

/** Shows the progress of the demo. */
export type Reporter = {
  /** Adds an event. */
  log(sentence: string): void
  /** Adds an event that takes time: shows `meanwhile` until `end` is called with the outcome. */
  start(what: string, meanwhile: string): { end(outcome: string): void }
  mark(worker: WorkerId, mark: WorkerMark | null): void
  markAll(mark: WorkerMark): void
  /** Called several times a second. */
  update(snapshot: Snapshot): void
  close(): Promise<void>
}

/** The figures of the headline. */
export type Headline = {
  readonly title: string
  /** The address of the dashboard. */
  readonly dashboard: string
  readonly pages: number
  readonly startedAt: number
  /** The faults so far, in one line. */
  faultSummary(): string
}

const STATUS_INTERVAL_MS = 5_000

/** For pipes and logs: one line per event, and the progress every few seconds. */
export function makePlainReporter(
  headline: Headline,
  write: (line: string) => void | Promise<void>,
): Reporter {
  let statusAt = performance.now()
  const log = (sentence: string): void => {
    void write(`${formatElapsed(headline.startedAt).padStart(5)}  ${sentence}`)
  }
  void write(headline.title)
  void write(`watch it in a browser: ${headline.dashboard}`)
  return {
    log,
    start: (what) => ({ end: (outcome) => log(`${what}: ${outcome}`) }),
    mark() {},
    markAll() {},
    update({ run: { counts } }) {
      if (performance.now() - statusAt < STATUS_INTERVAL_MS) return
      statusAt = performance.now()
      const items = counts.itemsNew + counts.itemsUpdated
      log(
        `${formatNumber(counts.pages)} of ${formatNumber(headline.pages)} pages, ${formatNumber(items)} items, ${headline.faultSummary()}`,
      )
    },
    async close() {},
  }
}
