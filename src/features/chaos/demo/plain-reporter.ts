import { clock, thousands, type Headline, type Narrator } from './reporter.ts'

const STATUS_EVERY_MS = 5_000

/** For pipes and logs: one line for each thing that happened, and how far it is every few seconds. */
export function makePlainNarrator(
  headline: Headline,
  write: (line: string) => void | Promise<void>,
): Narrator {
  let statusAt = performance.now()
  const tell = (sentence: string): void => {
    void write(`${clock(headline.startedAt).padStart(5)}  ${sentence}`)
  }
  void write(headline.title)
  void write(`watch it in a browser: ${headline.dashboard}`)
  return {
    tell,
    begin: (what) => ({ end: (outcome) => tell(`${what}: ${outcome}`) }),
    mark() {},
    markAll() {},
    show({ run: { counts } }) {
      if (performance.now() - statusAt < STATUS_EVERY_MS) return
      statusAt = performance.now()
      const items = counts.itemsNew + counts.itemsUpdated
      tell(
        `${thousands(counts.pages)} of ${thousands(headline.pages)} pages, ${thousands(items)} items, ${headline.deeds()}`,
      )
    },
    async close() {},
  }
}
