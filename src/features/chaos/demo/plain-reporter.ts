import { formatElapsed, formatNumber, type Headline, type Reporter } from './reporter.ts'

const STATUS_INTERVAL_MS = 5_000

/** For pipes and logs: one line for each thing that happened, and how far it is every few seconds. */
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
