import { AppendFile } from '../../core/events/append-file.ts'
import { redact } from '../../core/model/redact.ts'
import { safeText } from '../../core/events/safe-text.ts'

const MAX_BYTES = 10_000_000
const KEEP_FILES = 3

/** `out`, `err`: what the command printed, and where. `run`: what Unstuck has to say about it. */
export const LOG_STREAMS = ['out', 'err', 'run'] as const
export type LogStream = (typeof LOG_STREAMS)[number]

export type LogLine = { readonly at: string; readonly stream: LogStream; readonly text: string }

export type LogFileOptions = {
  /** Of one file. When it is full, the next is begun. */
  readonly maxBytes?: number
  /** How many full ones are kept. */
  readonly keep?: number
  readonly retryAfterMs?: number
}

/**
 * What a run's command printed, for people: `2026-11-16T10:00:00.123Z out text`, one line for each of the command's.
 * Later attempts of the same run go on in it. It never throws: when the disk is full the lines are lost, are counted, and
 * the run goes on.
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

  /** Lines as they are to be read: harmless, and without a line feed. */
  write(stream: LogStream, texts: readonly string[]): void {
    if (texts.length > 0) this.#file.append(formatLines(stream, texts))
  }

  /** A word of Unstuck's own. */
  note(text: string): void {
    this.write('run', [safeText(redact(text))])
  }

  close(): void {
    this.#file.close()
  }
}

/** All with one time: they came together. */
function formatLines(stream: LogStream, texts: readonly string[]): string {
  const start = `${new Date().toISOString()} ${stream} `
  return `${start}${texts.join(`\n${start}`)}\n`
}

/** A line of a log; null when it is not one. */
export function parseLogLine(line: string): LogLine | null {
  const match = LOG_LINE.exec(line)
  return match && { at: match[1]!, stream: match[2] as LogStream, text: match[3]! }
}

const LOG_LINE = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) (out|err|run) (.*)$/s
