import { rotatedFiles, lastLinesOffset } from '../../lib/files/follow-file.ts'
import { readLines } from '../../lib/files/read-lines.ts'
import { parseLogLine, type LogLine } from './log-file.ts'
import { openLog } from './log-reader.ts'

/** Of one page, about. */
const PAGE_MAX_BYTES = 256 * 1024

export type LogPage = {
  readonly lines: LogLine[]
  /** Give it back to go on behind them. */
  readonly next: string
  /** They do not follow what was read before: it was the beginning, or what came next was rotated away. */
  readonly anew: boolean
}

/** A part of a run's log: what follows a place in it, else its last lines. A bounded read, however large the log is. */
export async function readLogPage(
  path: string,
  after: string | null,
  limit: number,
): Promise<LogPage> {
  const files = await rotatedFiles(path)
  const position = parsePosition(after, files)
  try {
    return await (position ? pageAfter(files, position, limit) : lastPage(files, limit))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    // It was rotated while we looked; the next page begins here again.
    return { lines: [], next: after ?? '', anew: position === null }
  }
}

type LogFiles = Awaited<ReturnType<typeof rotatedFiles>>
type LogPosition = { readonly ino: number; readonly offset: number }

/** The last lines; what the newest file and the one before it hold is enough. */
async function lastPage(files: LogFiles, limit: number): Promise<LogPage> {
  const lines: LogLine[] = []
  let next = ''
  for (const { path } of files.slice(0, 2).toReversed()) {
    await using file = await openLog(path)
    const { ino, size } = await file.stat()
    const start = Math.max(await lastLinesOffset(file, limit), size - PAGE_MAX_BYTES)
    const page = await readLines(file, start, { lines: Infinity, bytes: PAGE_MAX_BYTES })
    lines.push(...parse(page.lines))
    next = `${ino}:${page.end}`
  }
  return { lines: lines.slice(-limit), next, anew: true }
}

/** What comes behind a place, in that file and in those that were begun after it. */
async function pageAfter(files: LogFiles, from: LogPosition, limit: number): Promise<LogPage> {
  const lines: LogLine[] = []
  let { ino, offset } = from
  const at = files.findIndex((file) => file.ino === ino)
  const oldestFirst = files.slice(0, at + 1).toReversed()
  for (const expected of oldestFirst) {
    await using file = await openLog(expected.path)
    const { ino: found, size } = await file.stat()
    if (found !== expected.ino) break // rotated in this very moment
    if (found !== ino) [ino, offset] = [found, 0]
    const page = await readLines(file, offset, {
      lines: limit - lines.length,
      bytes: PAGE_MAX_BYTES,
    })
    lines.push(...parse(page.lines))
    offset = page.end
    // An older file may end with half a line: that is left behind, but not a whole one.
    if (page.lines.length > 0 && offset < size) break
  }
  return { lines, next: `${ino}:${offset}`, anew: false }
}

function parse(lines: readonly string[]): LogLine[] {
  return lines.map(parseLogLine).filter((line) => line !== null)
}

function parsePosition(after: string | null, files: LogFiles): LogPosition | null {
  const [, ino, offset] = /^(\d{1,20}):(\d{1,15})$/.exec(after ?? '') ?? []
  const exists = files.some((file) => file.ino === Number(ino))
  return exists ? { ino: Number(ino), offset: Number(offset) } : null
}
