import type { Readable, Writable } from 'node:stream'
import { shortId, type RunId } from '../../core/model/id.ts'
import { redactor } from '../../core/model/redact.ts'
import { safeText } from '../../lib/text/safe-text.ts'
import { REAL_CLOCK } from '../../core/host/clock.ts'
import { LineSplitter } from './line-splitter.ts'
import { LiveOutput } from './live-output.ts'
import type { LogFile, LogStream } from './log-file.ts'

/** Time to read what is left in the pipes after the drain timeout. */
const DRAIN_MS = 250

export type CommandOutputOptions = {
  readonly run: RunId
  /** The command's streams. */
  readonly stdout: Readable
  readonly stderr: Readable
  readonly log: LogFile
  /** Values to redact: the run's token, the database's address or password. */
  readonly secrets?: readonly string[]
  /** This process's stdout and stderr. */
  readonly live?: { readonly stdout: Writable; readonly stderr: Writable }
  /** Write only the log. */
  readonly quiet?: boolean
  /** Called for each chunk of output, as activity. */
  readonly onActivity?: () => void
}

/**
 * Copies a command's output, line by line, to the run's log and to stdout and stderr. It buffers at most a line and a
 * chunk: the next chunk is read when the log is written and the reader can take more. A slow reader slows the command, as
 * without Unstuck; a reader that is gone does not.
 */
export class CommandOutput {
  /** Resolves when both streams have ended and all is written. Never rejects. */
  readonly finished: Promise<void>
  readonly #options: CommandOutputOptions
  readonly #sanitize: (text: string) => string
  readonly #force = new AbortController()

  constructor(options: CommandOutputOptions) {
    this.#options = options
    const redact = redactor(options.secrets ?? [])
    this.#sanitize = (text) => safeText(redact(stripColours(text)))
    this.finished = Promise.all([this.#pump('stdout', 'out'), this.#pump('stderr', 'err')]).then(
      () => {},
    )
  }

  /**
   * Called when the command has ended. Waits a bounded time for processes that hold the output open and for slow readers.
   * The command's own output is in the log afterwards.
   */
  async finish(graceMs: number): Promise<void> {
    if (await this.#finishedWithin(graceMs)) return
    this.#force.abort()
    if (await this.#finishedWithin(DRAIN_MS)) return
    const { log, stdout, stderr } = this.#options
    stdout.destroy()
    stderr.destroy()
    await this.finished
    log.note('no longer listened to: a process that the command left behind holds its output open')
  }

  async #pump(name: 'stdout' | 'stderr', stream: LogStream): Promise<void> {
    const { run, log, quiet, onActivity } = this.#options
    const to = quiet ? undefined : this.#options.live?.[name]
    const live = to && new LiveOutput(to, shortId(run), this.#force.signal)
    const splitter = new LineSplitter(this.#sanitize)
    const write = async (lines: readonly string[]): Promise<void> => {
      log.write(stream, lines)
      await live?.write(lines)
    }
    try {
      for await (const chunk of this.#options[name] as AsyncIterable<Buffer>) {
        onActivity?.()
        await write(splitter.push(chunk))
      }
    } catch {
      // Closed or broken: the output so far is kept.
    }
    await write(splitter.end())
    await live?.flush()
  }

  async #finishedWithin(ms: number): Promise<boolean> {
    const isFinished = new AbortController()
    const wait = this.finished.then(() => isFinished.abort())
    await Promise.race([wait, REAL_CLOCK.sleep(ms, isFinished.signal)])
    return isFinished.signal.aborted
  }
}

/** Removes colours and line-clearing sequences, and escapes all other control characters. */
function stripColours(text: string): string {
  if (!text.includes(CSI)) return text
  const [first, ...more] = text.split(CSI)
  return [first, ...more.map(stripLeadingCode)].join('')
}

function stripLeadingCode(piece: string): string {
  const start = COLOUR_CODE.exec(piece)
  return start ? piece.slice(start[0].length) : CSI + piece
}

const CSI = '\x1b['
const COLOUR_CODE = /^[\d;:]*[mK]/
