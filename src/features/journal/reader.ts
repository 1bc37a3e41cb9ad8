import { createReadStream, constants, type ReadStream } from 'node:fs'
import { access, stat, open } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { createZstdDecompress } from 'node:zlib'
import { messageOf, NotFoundError, UsageError } from '../../core/model/errors.ts'
import { lastLinesOffset } from '../../lib/files/follow-file.ts'
import { LINE_BYTES_MAX } from '../../lib/files/journal.ts'
import { LineSplitter } from '../../lib/files/lines.ts'

export type JournalEntry = { readonly time?: unknown; readonly type?: unknown } & Readonly<
  Record<string, unknown>
>

/** What was skipped. Reading continues after a damaged part of a journal. */
export type Skipped = {
  /** Lines that are not a JSON object. */
  garbage: number
  tooLong: number
  /** 1: the end is missing, as after a kill in the middle of a write. */
  cut: number
}

export function nothingSkipped(): Skipped {
  return { garbage: 0, tooLong: 0, cut: 0 }
}

/**
 * Yields the entries of a `.jsonl` or `.jsonl.zst` file, of a plain one between two positions. Throws only when the file
 * cannot be read at all.
 */
export async function* readJournal(
  path: string,
  skipped: Skipped = nothingSkipped(),
  start = 0,
  end = Infinity,
): AsyncGenerator<JournalEntry> {
  if (end <= start) return
  const file = createReadStream(path, { start, end: end - 1 })
  const chunks = path.endsWith('.zst') ? decompress(file, skipped) : file
  for await (const line of linesOf(chunks, skipped)) {
    const entry = parseEntry(line.bytes.toString())
    if (entry) yield entry
    else if (line.ended) skipped.garbage++
    else skipped.cut = 1
  }
}

async function* decompress(file: ReadStream, skipped: Skipped): AsyncGenerator<Buffer> {
  const plain: Readable = file.pipe(createZstdDecompress())
  let unreadable: Error | null = null
  file.once('error', (error) => plain.destroy((unreadable = error)))
  try {
    yield* plain
  } catch {
    // The compressed stream ends early or is damaged: what was read before is valid.
    if (unreadable) throw unreadable
    skipped.cut = 1
  } finally {
    file.destroy()
  }
}

type Line = { readonly bytes: Buffer; readonly ended: boolean }

async function* linesOf(chunks: AsyncIterable<Buffer>, skipped: Skipped): AsyncGenerator<Line> {
  const splitter = new LineSplitter(LINE_BYTES_MAX)
  for await (const chunk of chunks) {
    for (const bytes of splitter.push(chunk)) yield { bytes, ended: true }
  }
  const rest = splitter.end()
  skipped.tooLong += splitter.tooLong
  if (rest) yield { bytes: rest, ended: false }
}

/** Returns the entry in a line; null if the line is no JSON object. */
export function parseEntry(line: string): JournalEntry | null {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as JournalEntry)
      : null
  } catch {
    return null
  }
}

/** Returns size and time of a journal. Throws, with advice, if it cannot be read. */
export async function statJournal(path: string): Promise<{ size: number; mtimeMs: number }> {
  try {
    const { size, mtimeMs, ...facts } = await stat(path)
    if (facts.mode !== undefined && (facts.mode & constants.S_IFMT) === constants.S_IFDIR) {
      throw new UsageError(
        `${path} is a folder. Name the files in it, such as ${path}/*.jsonl, or the source of their workers.`,
      )
    }
    await access(path, constants.R_OK)
    return { size, mtimeMs }
  } catch (error) {
    if (error instanceof UsageError) throw error
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') {
      throw new NotFoundError(
        `file ${path}`,
        'Workers keep their journals beside the database, in .unstuck/journal.',
      )
    }
    throw new UsageError(`${path} cannot be read: ${messageOf(error)}.`, { cause: error })
  }
}

/** Returns where the last `count` lines of a plain journal begin. */
export async function journalTailOffset(path: string, count: number): Promise<number> {
  await using file = await open(path)
  // Closed when the function returns.
  return await lastLinesOffset(file, count)
}
