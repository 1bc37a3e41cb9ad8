import { createWriteStream } from 'node:fs'
import type { Writable } from 'node:stream'
import { WriteStream } from 'node:tty'
import { styleText } from 'node:util'

/** Whoever reads what we print. */
type Reader = {
  /** Who has left does not come back. */
  isThere: boolean
  readonly to: Writable
}

/** One for each stream, for as long as the process lives: commands come and go, stdout stays. */
const readers = new WeakMap<Writable, Reader>()

/** A command's lines as they come, on our own stdout or stderr: `[1a2b3c4d] text`. */
export class LiveOutput {
  readonly #reader: Reader
  readonly #prefix: string
  readonly #hurry: AbortSignal
  #shown: Promise<void> = Promise.resolve()

  /** `hurry` fires when a slow reader is no longer waited for. */
  constructor(to: Writable, label: string, hurry: AbortSignal) {
    this.#reader = readerOf(to)
    this.#prefix = `${styleText('dim', `[${label}]`, { stream: to })} `
    this.#hurry = hurry
  }

  /** Resolves when the reader can take more. One who is gone takes nothing, and holds up nobody. */
  async write(lines: readonly string[]): Promise<void> {
    if (lines.length === 0 || !this.#reader.isThere || this.#hurry.aborted) return
    const text = `${this.#prefix}${lines.join(`\n${this.#prefix}`)}\n`
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#shown = promise
    if (!this.#reader.to.write(text, () => resolve())) await this.#until(['drain'])
  }

  /** Resolves when all of it has left this process: what is only buffered dies with it. */
  async flush(): Promise<void> {
    await this.#until([], this.#shown)
  }

  /** One of these happens, or there is nothing left to wait for. */
  #until(events: readonly string[], promise?: Promise<void>): Promise<void> {
    const { to, isThere } = this.#reader
    const all = [...events, 'close', 'error']
    return new Promise((resolve) => {
      const goOn = (): void => {
        for (const event of all) to.off(event, goOn)
        this.#hurry.removeEventListener('abort', goOn)
        resolve()
      }
      for (const event of all) to.on(event, goOn)
      this.#hurry.addEventListener('abort', goOn)
      void promise?.then(() => goOn())
      if (this.#hurry.aborted || !isThere) goOn()
    })
  }
}

function readerOf(stream: Writable): Reader {
  const known = readers.get(stream)
  if (known) return known
  const reader: Reader = { isThere: stream.writable, to: withoutWaiting(stream) }
  const leave = (): void => {
    reader.isThere = false
  }
  // Never taken away again: an error that comes after the command's end must not end us.
  for (const each of new Set([stream, reader.to])) each.on('error', leave).on('close', leave)
  readers.set(stream, reader)
  return reader
}

/**
 * Node waits for a terminal: one that was halted with Ctrl-S would halt this whole process, its heartbeat too. As a file it
 * is written to on another thread.
 */
function withoutWaiting(stream: Writable): Writable {
  if (!(stream instanceof WriteStream)) return stream
  const { fd } = stream as WriteStream & { fd: number }
  return createWriteStream('', { fd, autoClose: false })
}
