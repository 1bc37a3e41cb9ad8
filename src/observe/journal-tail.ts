import { open } from 'node:fs/promises'
import { grow } from './growing-file.ts'
import { entriesOf, nothingSkipped, type JournalEntry } from './journal-reader.ts'

const BLOCK = 64 * 1024
const LINE_FEED = 0x0a

/** Where the last `count` lines of a plain journal begin, found from its end: journals grow large. */
export async function startOfLastLines(path: string, count: number): Promise<number> {
  await using file = await open(path)
  const block = Buffer.alloc(BLOCK)
  // The line feed at the very end closes the last line and begins none, so one more is looked for.
  let wanted = count + 1
  const { size } = await file.stat()
  for (let end = size; end > 0; end -= BLOCK) {
    const start = Math.max(0, end - BLOCK)
    const { bytesRead } = await file.read(block, 0, end - start, start)
    if (end === size && block[bytesRead - 1] !== LINE_FEED) wanted--
    for (let i = bytesRead - 1; i >= 0; i--) {
      if (block[i] === LINE_FEED && --wanted === 0) return start + i + 1
    }
  }
  return 0
}

/** Entries from a place in the file on, and those to come, until the signal says enough. */
export async function* followJournal(
  path: string,
  start: number,
  enough: AbortSignal,
): AsyncGenerator<JournalEntry> {
  yield* entriesOf(grow(path, await open(path), start, { enough }), nothingSkipped())
}
