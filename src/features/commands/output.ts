import { createWriteStream } from 'node:fs'
import type { Readable, Writable } from 'node:stream'
import { WriteStream } from 'node:tty'
import { styleText } from 'node:util'
import { redactor } from '../../core/model/redact.ts'
import { safeText } from '../../lib/text/safe-text.ts'
import { REAL_CLOCK } from '../../core/host/clock.ts'
import { ErrorLine } from './error-line.ts'
import { LineSplitter } from './line-splitter.ts'
import type { LogFile, LogStream } from './log-file.ts'

/** Time to read what is left in the pipes after the drain timeout. */
const DRAIN_MS = 250

export type CommandOutputOptions = {
  /** Stands in front of each line that is shown. */
  readonly label: string
  /** Stands in front of each line in the log, which other commands write too. @default '' */
  readonly logPrefix?: string
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
  readonly #errorLine = new ErrorLine()

  constructor(options: CommandOutputOptions) {
    this.#options = options
    const redact = redactor(options.secrets ?? [])
    this.#sanitize = (text) => safeText(redact(stripColours(text)))
    this.finished = Promise.all([this.#pump('stdout', 'out'), this.#pump('stderr', 'err')]).then(
      () => {},
    )
  }

  /** The line of stderr that describes why the command failed, if it did; null if stderr is empty. */
  get errorLine(): string | null {
    return this.#errorLine.text
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
    log.note('the output is no longer read: a process that the command left behind holds it open')
  }

  async #pump(name: 'stdout' | 'stderr', stream: LogStream): Promise<void> {
    const { label, log, logPrefix = '', quiet, onActivity } = this.#options
    const to = quiet ? undefined : this.#options.live?.[name]
    const live = to && new LiveOutput(to, label, this.#force.signal)
    const splitter = new LineSplitter(this.#sanitize)
    const write = async (lines: readonly string[]): Promise<void> => {
      log.write(stream, logPrefix === '' ? lines : lines.map((line) => `${logPrefix}${line}`))
      if (stream === 'err') this.#errorLine.push(lines)
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

/** The stdout or stderr of this process. */
type SharedStream = {
  /** False once its reader is gone. */
  isOpen: boolean
  readonly stream: Writable
}

/** One per stream for the life of the process, shared by all commands. */
const sharedStreams = new WeakMap<Writable, SharedStream>()

/** Prints a command's lines on stdout or stderr as they come: `[1a2b3c4d] text`. */
class LiveOutput {
  readonly #shared: SharedStream
  readonly #prefix: string
  readonly #force: AbortSignal
  #written: Promise<void> = Promise.resolve()

  /** `force` fires when a slow reader is no longer waited for. */
  constructor(to: Writable, label: string, force: AbortSignal) {
    this.#shared = sharedStreamOf(to)
    this.#prefix = `${styleText('dim', `[${label}]`, { stream: to })} `
    this.#force = force
  }

  /** Resolves when the reader can take more, or is gone. */
  async write(lines: readonly string[]): Promise<void> {
    if (lines.length === 0 || !this.#shared.isOpen || this.#force.aborted) return
    const text = `${this.#prefix}${lines.join(`\n${this.#prefix}`)}\n`
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#written = promise
    if (!this.#shared.stream.write(text, () => resolve())) await this.#waitFor(['drain'])
  }

  /** Resolves when everything is written: buffered output would be lost with the process. */
  async flush(): Promise<void> {
    await this.#waitFor([], this.#written)
  }

  /** Resolves on one of these events, or when waiting is pointless. */
  #waitFor(events: readonly string[], promise?: Promise<void>): Promise<void> {
    const { stream, isOpen } = this.#shared
    const all = [...events, 'close', 'error']
    return new Promise((resolve) => {
      const finish = (): void => {
        for (const event of all) stream.off(event, finish)
        this.#force.removeEventListener('abort', finish)
        resolve()
      }
      for (const event of all) stream.on(event, finish)
      this.#force.addEventListener('abort', finish)
      void promise?.then(() => finish())
      if (this.#force.aborted || !isOpen) finish()
    })
  }
}

function sharedStreamOf(stream: Writable): SharedStream {
  const known = sharedStreams.get(stream)
  if (known) return known
  const shared: SharedStream = { isOpen: stream.writable, stream: nonBlocking(stream) }
  const markClosed = (): void => {
    shared.isOpen = false
  }
  // Never removed: an error after the command's end must not end this process.
  for (const each of new Set([stream, shared.stream]))
    each.on('error', markClosed).on('close', markClosed)
  sharedStreams.set(stream, shared)
  return shared
}

/**
 * Node writes to a terminal synchronously: one that is paused with Ctrl-S would block this whole process. A file stream
 * writes on another thread.
 */
function nonBlocking(stream: Writable): Writable {
  if (!(stream instanceof WriteStream)) return stream
  const { fd } = stream as WriteStream & { fd: number }
  return createWriteStream('', { fd, autoClose: false })
}
