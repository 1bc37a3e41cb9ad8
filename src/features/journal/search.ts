import { constants } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import type { RunId } from '../../core/model/id.ts'
import { parseEntry, type JournalEntry } from './reader.ts'
import { listJournals } from '../../lib/files/journal.ts'
import { readLines } from '../../lib/files/lines.ts'

/** The search reads the ends of the newest journals in a folder. */
const JOURNALS_MAX = 50
/** `pruneJournals` keeps a thousand, and those of the last hour. */
const NAMES_MAX = 10_000
const TAIL_BYTES = [16 * 1024, 256 * 1024]
/** A worker may write an event a moment later than it happened: only older ones are in order. */
const SETTLED_MS = 100
/** The modification time of a file is coarse. */
const FILE_TIME_SLACK_MS = 1_000

export type JournalPage = {
  readonly entries: readonly (JournalEntry & { readonly time: string })[]
  /** Pass it back to continue after them. */
  readonly next: string
}

type JournalQuery = {
  readonly run: RunId
  /** `next` of the last result; null for the newest. */
  readonly after: string | null
  /** Older entries are not read. */
  readonly since: Date
  readonly limit: number
}

/**
 * Returns the entries about a run in the journals of a folder, in order of time: those after a position, else the newest.
 * Reads only the ends of files, for live views; `readJournal` reads a whole journal.
 */
export async function searchJournals(folder: string, query: JournalQuery): Promise<JournalPage> {
  const position = parsePosition(query.after)
  const from = position?.time ?? query.since.toISOString()
  const until = new Date(Date.now() - SETTLED_MS).toISOString()
  const found: JournalPage['entries'][number][] = []
  for (const path of await journalsSince(folder, Date.parse(from))) {
    for (const entry of await readTail(path, from)) {
      if (
        mentionsRun(entry, query.run) &&
        hasTime(entry) &&
        entry.time >= from &&
        entry.time <= until
      )
        found.push(entry)
    }
  }
  // The same order every time, so that a position stays valid.
  found.sort((a, b) => compare(a.time, b.time) || compare(String(a['worker']), String(b['worker'])))
  const fresh = found.slice(position?.count ?? 0)
  const entries = position ? fresh.slice(0, query.limit) : fresh.slice(-query.limit)
  const last = entries.at(-1)?.time
  if (last === undefined) return { entries, next: query.after ?? `${from} 0` }
  const upTo = found.indexOf(entries.at(-1)!)
  const same = found.slice(0, upTo + 1).filter(({ time }) => time === last).length
  return { entries, next: `${last} ${same}` }
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** Returns how many entries with exactly this time were returned already. */
function parsePosition(after: string | null): { time: string; count: number } | null {
  const [, time, count] = POSITION.exec(after ?? '') ?? []
  return time === undefined ? null : { time, count: Number(count) }
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const POSITION = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) (\d{1,6})$/

function hasTime(entry: JournalEntry): entry is JournalPage['entries'][number] {
  return typeof entry.time === 'string' && TIME.test(entry.time)
}

function mentionsRun({ run, verdict }: JournalEntry, wanted: RunId): boolean {
  return run === wanted || (verdict as { run?: unknown } | null | undefined)?.run === wanted
}

/** Returns the journals that were written to since then, the latest first. Only names of journals, and no links. */
async function journalsSince(folder: string, since: number): Promise<string[]> {
  const journals = (await listJournals(folder)).filter(({ isCompressed }) => !isCompressed)
  const paths = journals.slice(0, NAMES_MAX).map(({ path }) => path)
  const times = await Promise.all(
    paths.map(async (path) => ({ path, at: (await stat(path).catch(() => null))?.mtimeMs ?? 0 })),
  )
  return times
    .filter(({ at }) => at >= since - FILE_TIME_SLACK_MS)
    .sort((a, b) => b.at - a.at)
    .slice(0, JOURNALS_MAX)
    .map(({ path }) => path)
}

/** Reads the end of a journal: from this time on, up to the limit. */
async function readTail(path: string, from: string): Promise<JournalEntry[]> {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants
  const opened = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK).catch(() => null)
  if (!opened) return []
  await using file = opened
  const { size } = await file.stat()
  let entries: JournalEntry[] = []
  for (const bytes of TAIL_BYTES) {
    const start = Math.max(0, size - bytes)
    const { lines } = await readLines(file, start, { lines: Infinity, bytes })
    // The first line is incomplete, unless it begins the file.
    entries = lines
      .slice(start > 0 ? 1 : 0)
      .map(parseEntry)
      .filter((entry) => entry !== null)
    const first = entries.find(hasTime)
    if (start === 0 || (first && first.time < from)) break
  }
  return entries
}
