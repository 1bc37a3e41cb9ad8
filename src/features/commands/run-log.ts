import { hostname } from 'node:os'
import type { RunLogReader } from '../../contracts/feature.ts'
import { safeText } from '../../lib/text/safe-text.ts'
import { UsageError } from '../../core/model/errors.ts'
import { shortId } from '../../core/model/id.ts'
import { redact } from '../../core/model/redact.ts'
import { unstuckCommand } from '../../core/model/shell-command.ts'
import { realFolder, runFolder } from '../../lib/files/data-folder.ts'
import { rotatedFiles, lastLinesOffset } from '../../lib/files/follow-file.ts'
import { readLines } from '../../lib/files/lines.ts'
import { parseLogLines, type LogLine } from './log-file.ts'
import { openLog } from './log-reader.ts'
import { COMMAND_STORE } from './store/store.ts'

/** The output of a run's command, if it is on this machine. */
export const COMMAND_LOG: RunLogReader = {
  async read({ dataFolder }, { id }, after, limit) {
    if (!(await realFolder(dataFolder, 'runs', id))) return null
    try {
      const { lines, next, anew } = await readLogPage(
        runFolder(dataFolder, id).logPath,
        after,
        limit,
      )
      if (next === '') return null
      return {
        lines: lines.map(({ at, stream, text }) => ({
          at,
          stream: stream === 'run' ? 'event' : stream,
          text: safeText(redact(text)),
          raw: null,
        })),
        next,
        anew,
      }
    } catch (error) {
      if (error instanceof UsageError) return null
      throw error
    }
  },

  async explainMissing({ store }, { id }) {
    const [newest] = await (await store.extend(COMMAND_STORE)).executions([id], 1)
    if (!newest) return null
    const command = unstuckCommand('logs', [shortId(id)])
    return newest.host === hostname()
      ? `It is not in the folder of this server: call \`${command}\` where it was started.`
      : `It was kept on ${newest.host}: call \`${command}\` there.`
  },
}

/** The approximate size of a page. */
const PAGE_MAX_BYTES = 256 * 1024

export type LogPage = {
  readonly lines: LogLine[]
  /** The position behind these lines, for the next page. */
  readonly next: string
  /** True if these lines do not follow the previous page: it is the first, or the next lines were rotated away. */
  readonly anew: boolean
}

/** Returns a part of a run's log: what follows a position, or its last lines. Reads a bounded amount. */
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
    // Rotated during the read; the next page starts here again.
    return { lines: [], next: after ?? '', anew: position === null }
  }
}

type LogFiles = Awaited<ReturnType<typeof rotatedFiles>>
type LogPosition = { readonly ino: number; readonly offset: number }

/** Returns the last lines of the newest two files. */
async function lastPage(files: LogFiles, limit: number): Promise<LogPage> {
  const lines: LogLine[] = []
  let next = ''
  for (const { path } of files.slice(0, 2).toReversed()) {
    await using file = await openLog(path)
    const { ino, size } = await file.stat()
    const start = Math.max(await lastLinesOffset(file, limit), size - PAGE_MAX_BYTES)
    const page = await readLines(file, start, { lines: Infinity, bytes: PAGE_MAX_BYTES })
    lines.push(...parseLogLines(page.lines))
    next = `${ino}:${page.end}`
  }
  return { lines: lines.slice(-limit), next, anew: true }
}

/** Returns what follows a position, in that file and in newer ones. */
async function pageAfter(files: LogFiles, from: LogPosition, limit: number): Promise<LogPage> {
  const lines: LogLine[] = []
  let { ino, offset } = from
  const at = files.findIndex((file) => file.ino === ino)
  const oldestFirst = files.slice(0, at + 1).toReversed()
  for (const expected of oldestFirst) {
    await using file = await openLog(expected.path)
    const { ino: found, size } = await file.stat()
    if (found !== expected.ino) break // rotated during the read
    if (found !== ino) [ino, offset] = [found, 0]
    const page = await readLines(file, offset, {
      lines: limit - lines.length,
      bytes: PAGE_MAX_BYTES,
    })
    lines.push(...parseLogLines(page.lines))
    offset = page.end
    // An older file may end with half a line, which is skipped.
    if (page.lines.length > 0 && offset < size) break
  }
  return { lines, next: `${ino}:${offset}`, anew: false }
}

function parsePosition(after: string | null, files: LogFiles): LogPosition | null {
  const [, ino, offset] = /^(\d{1,20}):(\d{1,15})$/.exec(after ?? '') ?? []
  const exists = files.some((file) => file.ino === Number(ino))
  return exists ? { ino: Number(ino), offset: Number(offset) } : null
}
