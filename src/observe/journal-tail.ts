import { open, stat, type FileHandle } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { entriesOf, nothingSkipped, type JournalEntry } from './journal-reader.ts'

const BLOCK = 64 * 1024
const LOOK_EVERY_MS = 250
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
export function followJournal(
  path: string,
  start: number,
  enough: AbortSignal,
): AsyncGenerator<JournalEntry> {
  return entriesOf(grow(path, start, enough), nothingSkipped())
}

/** Looks at the file rather than waiting for a notice: that works on every file system, and in containers. */
async function* grow(path: string, start: number, enough: AbortSignal): AsyncGenerator<Buffer> {
  let file: FileHandle = await open(path)
  let position = start
  try {
    while (!enough.aborted) {
      const { bytesRead, buffer } = await file.read(Buffer.alloc(BLOCK), 0, BLOCK, position)
      position += bytesRead
      if (bytesRead > 0) {
        yield buffer.subarray(0, bytesRead)
        continue
      }
      if (await isReplaced(file, path, position)) {
        await file.close()
        file = await open(path)
        position = 0
        // Half a line of the old file must not run into the new one.
        yield Buffer.from('\n')
      }
      await sleep(LOOK_EVERY_MS, undefined, { signal: enough }).catch(() => {})
    }
  } finally {
    await file.close()
  }
}

async function isReplaced(file: FileHandle, path: string, position: number): Promise<boolean> {
  const there = await stat(path).catch(() => null)
  if (there === null) return false
  const { ino } = await file.stat()
  return there.ino !== ino || there.size < position
}
