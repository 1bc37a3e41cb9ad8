import { nothingSkipped, readJournal, type JournalEntry, type Skipped } from './reader.ts'

/** A journal from a position on; without `end`, to its end. */
export type JournalPart = { readonly path: string; readonly start: number; readonly end?: number }

type OpenJournal = {
  entry: JournalEntry
  time: string
  readonly rest: AsyncGenerator<JournalEntry>
}

/** Yields the entries of several journals in order of time. Each is open only between its first entry and its last. */
export async function* mergeJournals(
  parts: readonly JournalPart[],
  skipped: Skipped,
): AsyncGenerator<JournalEntry> {
  if (parts.length === 1) return yield* read(parts[0]!, skipped)
  const waiting: { part: JournalPart; time: string }[] = []
  for (const part of parts) waiting.push({ part, time: await startOf(part) })
  waiting.sort((a, b) => compareText(b.time, a.time))
  const open: OpenJournal[] = []
  try {
    for (;;) {
      const next = earliest(open)
      const later = waiting.at(-1)
      if (later && (!next || later.time < next.time)) {
        const rest = read(waiting.pop()!.part, skipped)
        const { value, done } = await rest.next()
        if (!done) open.push({ entry: value, time: timeOf(value) ?? '', rest })
        continue
      }
      if (!next) return
      yield next.entry
      const { value, done } = await next.rest.next()
      if (done) open.splice(open.indexOf(next), 1)
      else Object.assign(next, { entry: value, time: timeOf(value) ?? next.time })
    }
  } finally {
    await Promise.all(open.map(({ rest }) => rest.return(undefined)))
  }
}

/** Sorts entries by time; those without one come first. */
export function sortEntries(entries: readonly JournalEntry[]): JournalEntry[] {
  return entries.toSorted((a, b) => compareText(timeOf(a) ?? '', timeOf(b) ?? ''))
}

/** Returns the time of an entry, a text that sorts by time. */
export function timeOf({ time }: JournalEntry): string | null {
  return typeof time === 'string' ? time : null
}

function read({ path, start, end }: JournalPart, skipped: Skipped): AsyncGenerator<JournalEntry> {
  return readJournal(path, skipped, start, end)
}

async function startOf(part: JournalPart): Promise<string> {
  for await (const entry of read(part, nothingSkipped())) return timeOf(entry) ?? ''
  return ''
}

function earliest(open: readonly OpenJournal[]): OpenJournal | undefined {
  let first = open[0]
  for (const one of open) if (one.time < first!.time) first = one
  return first
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
