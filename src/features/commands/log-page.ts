import { generations, placeOfLastLines } from '../../lib/files/growing-file.ts'
import { linesFrom } from '../../lib/files/line-page.ts'
import { parseLogLine, type LogLine } from './log-file.ts'
import { openLog } from './log-reader.ts'

/** Of one page, about. */
const PAGE_BYTES = 256 * 1024

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
  const files = await generations(path)
  const from = placeIn(after, files)
  try {
    return await (from ? following(files, from, limit) : newest(files, limit))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    // It was rotated while we looked; the next page begins here again.
    return { lines: [], next: after ?? '', anew: from === null }
  }
}

type Files = Awaited<ReturnType<typeof generations>>
type Place = { readonly ino: number; readonly place: number }

/** The last lines; what the newest file and the one before it hold is enough. */
async function newest(files: Files, limit: number): Promise<LogPage> {
  const lines: LogLine[] = []
  let next = ''
  for (const { path } of files.slice(0, 2).toReversed()) {
    await using file = await openLog(path)
    const { ino, size } = await file.stat()
    const start = Math.max(await placeOfLastLines(file, limit), size - PAGE_BYTES)
    const page = await linesFrom(file, start, { lines: Infinity, bytes: PAGE_BYTES })
    lines.push(...parse(page.lines))
    next = `${ino}:${page.end}`
  }
  return { lines: lines.slice(-limit), next, anew: true }
}

/** What comes behind a place, in that file and in those that were begun after it. */
async function following(files: Files, from: Place, limit: number): Promise<LogPage> {
  const lines: LogLine[] = []
  let { ino, place } = from
  const at = files.findIndex((file) => file.ino === ino)
  const oldestFirst = files.slice(0, at + 1).toReversed()
  for (const expected of oldestFirst) {
    await using file = await openLog(expected.path)
    const { ino: found, size } = await file.stat()
    if (found !== expected.ino) break // rotated in this very moment
    if (found !== ino) [ino, place] = [found, 0]
    const page = await linesFrom(file, place, { lines: limit - lines.length, bytes: PAGE_BYTES })
    lines.push(...parse(page.lines))
    place = page.end
    // An older file may end with half a line: that is left behind, but not a whole one.
    if (page.lines.length > 0 && place < size) break
  }
  return { lines, next: `${ino}:${place}`, anew: false }
}

function parse(lines: readonly string[]): LogLine[] {
  return lines.map(parseLogLine).filter((line) => line !== null)
}

function placeIn(after: string | null, files: Files): Place | null {
  const [, ino, place] = /^(\d{1,20}):(\d{1,15})$/.exec(after ?? '') ?? []
  const isThere = files.some((file) => file.ino === Number(ino))
  return isThere ? { ino: Number(ino), place: Number(place) } : null
}
