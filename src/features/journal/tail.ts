import { open } from 'node:fs/promises'
import { followFile, lastLinesOffset } from '../../lib/files/follow-file.ts'
import { entriesOf, nothingSkipped, type JournalEntry } from './reader.ts'

/** Returns where the last `count` lines of a plain journal begin. */
export async function journalTailOffset(path: string, count: number): Promise<number> {
  await using file = await open(path)
  // Closed when the function returns.
  return await lastLinesOffset(file, count)
}

/** Yields the entries from a position on, then new ones, until the signal fires. */
export async function* followJournal(
  path: string,
  start: number,
  signal: AbortSignal,
): AsyncGenerator<JournalEntry> {
  yield* entriesOf(followFile(path, await open(path), start, { signal }), nothingSkipped())
}
