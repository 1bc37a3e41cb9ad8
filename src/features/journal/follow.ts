import { open } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { lastLinesOffset } from '../../lib/files/follow-file.ts'
import { LINE_BYTES_MAX } from '../../lib/files/journal.ts'
import { readLines } from '../../lib/files/lines.ts'
import { sortEntries, timeOf } from './merge.ts'
import { parseEntry, type JournalEntry } from './reader.ts'

const POLL_MS = 250
/** Later entries wait for the next round: another worker may be writing an earlier one. */
const SETTLED_MS = 100

type Position = { ino: number; at: number }

/**
 * Yields what is added to journals, in order of time, until the signal fires. Files start at the given positions, and
 * those that `list` returns later at their beginning. It polls: that works on every file system.
 */
export async function* followJournals(
  list: () => Promise<readonly string[]>,
  starts: ReadonlyMap<string, number>,
  signal: AbortSignal,
): AsyncGenerator<JournalEntry> {
  const positions = new Map<string, Position>()
  let held: JournalEntry[] = []
  while (!signal.aborted) {
    const settled = new Date(Date.now() - SETTLED_MS).toISOString()
    const isSettled = (entry: JournalEntry): boolean => (timeOf(entry) ?? '') <= settled
    const added: JournalEntry[] = []
    for (const path of await list())
      added.push(...(await readAdded(path, starts.get(path) ?? 0, positions)))
    yield* sortEntries([...held, ...added.filter(isSettled)])
    held = added.filter((entry) => !isSettled(entry))
    await sleep(POLL_MS, undefined, { signal }).catch(() => {})
  }
}

/** Reads the whole lines that were added to a file; all of it if it was replaced. */
async function readAdded(
  path: string,
  start: number,
  positions: Map<string, Position>,
): Promise<JournalEntry[]> {
  // Between two rounds a journal may be removed or compressed.
  const opened = await open(path).catch(() => null)
  if (!opened) return []
  await using file = opened
  const { ino, size } = await file.stat()
  let position = positions.get(path) ?? { ino, at: start }
  if (position.ino !== ino || size < position.at) position = { ino, at: 0 }
  const entries: JournalEntry[] = []
  let at = position.at
  for (let end; at < size; at = end) {
    const page = await readLines(file, at, { lines: Infinity, bytes: LINE_BYTES_MAX })
    end = page.end
    entries.push(...page.lines.map(parseEntry).filter((entry) => entry !== null))
    if (end === at) break
  }
  positions.set(path, { ino, at })
  return entries
}

const LINE_FEED = 0x0a

/** Returns where the last whole line of a journal ends: one that is still being written is left out. */
export async function wholeLinesEnd(path: string): Promise<number> {
  await using file = await open(path)
  const { size } = await file.stat()
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, Math.max(0, size - 1))
  return size === 0 || buffer[0] === LINE_FEED ? size : await lastLinesOffset(file, 1)
}
