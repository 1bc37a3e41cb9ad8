import { AppendFile } from '../../lib/files/append-file.ts'
import { redact } from '../../core/model/redact.ts'
import { safeText } from '../../lib/text/safe-text.ts'

const MAX_BYTES = 10_000_000
const KEEP_FILES = 3

/** `out`, `err`: output of the command. `run`: notes of Unstuck. */
export const LOG_STREAMS = ['out', 'err', 'run'] as const
export type LogStream = (typeof LOG_STREAMS)[number]

export type LogLine = { readonly at: string; readonly stream: LogStream; readonly text: string }

export type LogFileOptions = {
  /** The size at which a new file is started. */
  readonly maxBytes?: number
  /** How many full files are kept. */
  readonly keep?: number
  readonly retryAfterMs?: number
}

/**
 * The output of a run's command: `2026-11-16T10:00:00.123Z out text`, one line for each of the command's. Later attempts
 * of the run append to it. It never throws: when the disk is full, lines are dropped and counted, and the run continues.
 */
export class LogFile {
  readonly #file: AppendFile

  constructor(
    path: string,
    { maxBytes = MAX_BYTES, keep = KEEP_FILES, ...rest }: LogFileOptions = {},
  ) {
    const remark = (lost: number): string =>
      formatLines('run', [
        `${lost} ${lost === 1 ? 'line' : 'lines'} lost: the log could not be written`,
      ])
    this.#file = new AppendFile(path, { maxBytes, keep, gapLine: remark, ...rest })
  }

  /** Appends sanitized lines without line feeds. */
  write(stream: LogStream, texts: readonly string[]): void {
    if (texts.length > 0) this.#file.append(formatLines(stream, texts))
  }

  /** Appends a note of Unstuck. */
  note(text: string): void {
    this.write('run', [safeText(redact(text))])
  }

  close(): void {
    this.#file.close()
  }
}

/** Formats lines that arrived together, with one time. */
function formatLines(stream: LogStream, texts: readonly string[]): string {
  const start = `${new Date().toISOString()} ${stream} `
  return `${start}${texts.join(`\n${start}`)}\n`
}

/** Parses lines of a log; drops what is no such line. */
export function parseLogLines(lines: readonly (string | Buffer)[]): LogLine[] {
  return lines.flatMap((line) => {
    const match = LOG_LINE.exec(line.toString())
    return match ? [{ at: match[1]!, stream: match[2] as LogStream, text: match[3]! }] : []
  })
}

const LOG_LINE = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) (out|err|run) (.*)$/s
