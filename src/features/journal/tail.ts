import { open } from 'node:fs/promises'
import { grow, placeOfLastLines } from '../../lib/files/growing-file.ts'
import { entriesOf, nothingSkipped, type JournalEntry } from './reader.ts'

/** Where the last `count` lines of a plain journal begin. */
export async function startOfLastLines(path: string, count: number): Promise<number> {
  await using file = await open(path)
  // The file is closed when this function is left.
  return await placeOfLastLines(file, count)
}

/** Entries from a place in the file on, and those to come, until the signal says enough. */
export async function* followJournal(
  path: string,
  start: number,
  enough: AbortSignal,
): AsyncGenerator<JournalEntry> {
  yield* entriesOf(grow(path, await open(path), start, { enough }), nothingSkipped())
}
