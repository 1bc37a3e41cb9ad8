import { open } from 'node:fs/promises'
import { followFile, lastLinesOffset } from '../../lib/files/follow-file.ts'
import { entriesOf, nothingSkipped, type JournalEntry } from './reader.ts'

/** Where the last `count` lines of a plain journal begin. */
export async function journalTailOffset(path: string, count: number): Promise<number> {
  await using file = await open(path)
  // The file is closed when this function is left.
  return await lastLinesOffset(file, count)
}

/** Entries from a place in the file on, and those to come, until the signal says enough. */
export async function* followJournal(
  path: string,
  start: number,
  signal: AbortSignal,
): AsyncGenerator<JournalEntry> {
  yield* entriesOf(followFile(path, await open(path), start, { signal }), nothingSkipped())
}
