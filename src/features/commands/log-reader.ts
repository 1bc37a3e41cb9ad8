import { constants } from 'node:fs'
import { open, realpath, type FileHandle } from 'node:fs/promises'
import { UsageError } from '../../core/model/errors.ts'
import type { RunId } from '../../core/model/id.ts'
import { rotatedFiles, followFile, lastLinesOffset } from '../../lib/files/follow-file.ts'
import { LineSplitter } from '../../lib/files/lines.ts'
import { isLogPathOf } from '../../lib/files/data-folder.ts'
import { parseLogLines, type LogLine, type LogStream } from './log-file.ts'

/** The longest line that is written: 64 K characters, some of them escaped. */
const LINE_BYTES_MAX = 1_000_000

export type LogFilter = {
  /** Only the last lines; null: all. */
  readonly lines: number | null
  readonly stream?: LogStream | undefined
  /** Only lines from this time on, by the clock of the host that wrote them. */
  readonly since?: Date | undefined
}

export type FollowOptions = {
  /** Fires when the reader stops. */
  readonly signal: AbortSignal
  /** Called when all was read. Returns true if no more lines will come. */
  readonly isFinished: () => Promise<boolean>
  /** Called when lines were rotated away before they were read. */
  readonly onMissed: () => void
}

/** Returns true if the run's log exists at its path, also after links are resolved. */
export async function logExists(path: string, run: RunId): Promise<boolean> {
  const [newest] = isLogPathOf(path, run) ? await rotatedFiles(path) : []
  const real = newest && (await realpath(newest.path).catch(() => null))
  return typeof real === 'string' && isLogPathOf(stripGeneration(real), run)
}

/** Yields the lines of a run's log in order, in batches: a log may be larger than memory. */
export async function* readLog(
  path: string,
  filter: LogFilter,
  follow: FollowOptions | null,
): AsyncGenerator<readonly LogLine[]> {
  const matching = filterLines(followLines(path, filter, follow), filter)
  yield* filter.lines === null ? matching : lastLines(matching, filter.lines)
}

/** An empty batch means that there is no more for now. */
async function* followLines(
  path: string,
  filter: LogFilter,
  follow: FollowOptions | null,
): AsyncGenerator<LogLine[]> {
  const cutter = new LineSplitter(LINE_BYTES_MAX)
  const first = (await openNewest(path, filter)) ?? (await openOldest(path))
  if (!first) return
  const growth = { ...(follow ?? { signal: new AbortController().signal }), open: openLog }
  for await (const chunk of followFile(path, first.file, first.offset, growth)) {
    const isCaughtUp = chunk.length === 0
    if (isCaughtUp && !follow) break
    const lines = parseLogLines(cutter.push(chunk))
    if (isCaughtUp || lines.length > 0) yield lines
  }
  // The incomplete line of a killed writer.
  const rest = cutter.end()
  if (rest) yield parseLogLines([rest])
}

type OpenLog = { readonly file: FileHandle; readonly offset: number }

/** Returns the last lines if all are in the newest file, without reading the others. */
async function openNewest(
  path: string,
  { lines, stream, since }: LogFilter,
): Promise<OpenLog | null> {
  if (lines === null || stream !== undefined || since !== undefined) return null
  const file = await openIfExists(path)
  const offset = file ? await lastLinesOffset(file, lines) : 0
  if (file && offset > 0) return { file, offset }
  await file?.close()
  return null
}

async function openOldest(path: string): Promise<OpenLog | null> {
  for (;;) {
    const oldest = (await rotatedFiles(path)).at(-1)
    if (!oldest) return null
    const file = await openIfExists(oldest.path)
    if (file) return { file, offset: 0 }
    // It was the oldest file, and was removed.
  }
}

async function openIfExists(path: string): Promise<FileHandle | null> {
  try {
    return await openLog(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

/** Opens a plain file, and no link: a command could place one in its folder. */
export async function openLog(path: string): Promise<FileHandle> {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants
  const file = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK).catch((error: unknown) => {
    throw (error as NodeJS.ErrnoException).code === 'ELOOP' ? notALog(path) : error
  })
  if ((await file.stat()).isFile()) return file
  await file.close()
  throw notALog(path)
}

function notALog(path: string): UsageError {
  return new UsageError(
    `${path} is not a log but a link or something else, and was not read. Check it with \`ls -l\`.`,
  )
}

async function* filterLines(
  batches: AsyncIterable<readonly LogLine[]>,
  { stream, since }: LogFilter,
): AsyncGenerator<readonly LogLine[]> {
  const from = since?.toISOString() ?? ''
  const isWanted = (line: LogLine): boolean =>
    line.at >= from && (stream === undefined || line.stream === stream)
  for await (const batch of batches) {
    const matching = batch.filter(isWanted)
    // Skipped, because an empty batch has a meaning.
    if (matching.length > 0 || batch.length === 0) yield matching
  }
}

/** Yields the last existing lines, then new ones. */
async function* lastLines(
  batches: AsyncIterable<readonly LogLine[]>,
  count: number,
): AsyncGenerator<readonly LogLine[]> {
  let kept: LogLine[] = []
  let isCaughtUp = false
  for await (const batch of batches) {
    if (isCaughtUp) {
      yield batch
      continue
    }
    kept.push(...batch)
    // Now and then, because removing from the front moves the whole list.
    if (kept.length > 2 * count) kept = kept.slice(-count)
    if (batch.length > 0) continue
    isCaughtUp = true
    yield kept.slice(-count)
    kept = []
  }
  if (!isCaughtUp) yield kept.slice(-count)
}

function stripGeneration(path: string): string {
  return path.replace(/\.\d+$/, '')
}
