import { createWriteStream } from 'node:fs'
import type { Writable } from 'node:stream'
import { WriteStream } from 'node:tty'
import { styleText } from 'node:util'

/** The stdout or stderr of this process. */
type SharedStream = {
  /** False once its reader is gone. */
  isOpen: boolean
  readonly stream: Writable
}

/** One per stream for the life of the process, shared by all commands. */
const sharedStreams = new WeakMap<Writable, SharedStream>()

/** Prints a command's lines on stdout or stderr as they come: `[1a2b3c4d] text`. */
export class LiveOutput {
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
