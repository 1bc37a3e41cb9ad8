import type { Readable, Writable } from 'node:stream'
import { shortId, type RunId } from '../../core/model/id.ts'
import { redactor } from '../../core/model/redact.ts'
import { safeText } from '../../core/events/safe-text.ts'
import { REAL_CLOCK } from '../../core/host/clock.ts'
import { LineSplitter } from './line-splitter.ts'
import { LiveOutput } from './live-output.ts'
import type { LogFile, LogStream } from './log-file.ts'

/** For what is still in the pipes when nobody waits any longer: far more time than that needs. */
const DRAIN_MS = 250

export type CommandOutputOptions = {
  readonly run: RunId
  /** What the command prints. */
  readonly stdout: Readable
  readonly stderr: Readable
  readonly log: LogFile
  /** Values that must not be kept or shown: the run's token, the database's address or password. */
  readonly secrets?: readonly string[]
  /** Our own stdout and stderr, to show it as it comes. */
  readonly live?: { readonly stdout: Writable; readonly stderr: Writable }
  /** Only the log. */
  readonly quiet?: boolean
  /** Called for each piece of output: a sign of activity. */
  readonly onActivity?: () => void
}

/**
 * Takes what a command prints, line by line, into the run's log and onto our own stdout and stderr. No more than a line
 * and a chunk are ever held: when the log is written and the reader can take more, the next chunk is read, so a slow reader
 * slows the command as it would have without us. A reader that is gone does not.
 */
export class CommandOutput {
  /** Both streams have ended and all is written. Never rejects. */
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
   * To be called when the command has ended. A process that it left behind may hold its output open, and a reader may be
   * slow: they are waited for that long and no longer. What the command itself has printed is in the log then.
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
      // Closed by us, or broken: what came so far is kept.
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

/** Colours, and the order to clear a line, say nothing in a log. Whatever else a terminal would obey is made visible. */
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
