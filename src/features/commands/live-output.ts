import { createWriteStream } from 'node:fs'
import type { Writable } from 'node:stream'
import { WriteStream } from 'node:tty'
import { styleText } from 'node:util'

/** Whoever reads what we print. */
type SharedStream = {
  /** Who has left does not come back. */
  isOpen: boolean
  readonly stream: Writable
}

/** One for each stream, for as long as the process lives: commands come and go, stdout stays. */
const sharedStreams = new WeakMap<Writable, SharedStream>()

/** A command's lines as they come, on our own stdout or stderr: `[1a2b3c4d] text`. */
export class LiveOutput {
  readonly #shared: SharedStream
  readonly #prefix: string
  readonly #force: AbortSignal
  #written: Promise<void> = Promise.resolve()

  /** `hurry` fires when a slow reader is no longer waited for. */
  constructor(to: Writable, label: string, force: AbortSignal) {
    this.#shared = sharedStreamOf(to)
    this.#prefix = `${styleText('dim', `[${label}]`, { stream: to })} `
    this.#force = force
  }

  /** Resolves when the reader can take more. One who is gone takes nothing, and holds up nobody. */
  async write(lines: readonly string[]): Promise<void> {
    if (lines.length === 0 || !this.#shared.isOpen || this.#force.aborted) return
    const text = `${this.#prefix}${lines.join(`\n${this.#prefix}`)}\n`
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#written = promise
    if (!this.#shared.stream.write(text, () => resolve())) await this.#waitFor(['drain'])
  }

  /** Resolves when all of it has left this process: what is only buffered dies with it. */
  async flush(): Promise<void> {
    await this.#waitFor([], this.#written)
  }

  /** One of these happens, or there is nothing left to wait for. */
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
  // Never taken away again: an error that comes after the command's end must not end us.
  for (const each of new Set([stream, shared.stream]))
    each.on('error', markClosed).on('close', markClosed)
  sharedStreams.set(stream, shared)
  return shared
}

/**
 * Node waits for a terminal: one that was halted with Ctrl-S would halt this whole process, its heartbeat too. As a file it
 * is written to on another thread.
 */
function nonBlocking(stream: Writable): Writable {
  if (!(stream instanceof WriteStream)) return stream
  const { fd } = stream as WriteStream & { fd: number }
  return createWriteStream('', { fd, autoClose: false })
}
