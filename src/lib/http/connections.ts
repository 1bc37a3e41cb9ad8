import type { Socket } from 'node:net'

/**
 * Limits the open connections. When the limit is reached, the oldest connection without a valid token is closed, so that
 * idle connections of other users of the machine cannot shut out authenticated callers.
 */
export class Connections {
  readonly #max: number
  readonly #open = new Set<Socket>()
  /** Oldest first. */
  readonly #untrusted = new Set<Socket>()

  constructor(max: number) {
    this.#max = max
  }

  add(socket: Socket): void {
    if (this.#open.size >= this.#max) {
      const [oldest = socket] = this.#untrusted
      this.#drop(oldest)
      if (oldest === socket) return
    }
    this.#open.add(socket)
    this.#untrusted.add(socket)
    socket.once('close', () => this.#forget(socket))
  }

  /** Marks a connection as authenticated. */
  trust(socket: Socket): void {
    this.#untrusted.delete(socket)
  }

  /** Closes all connections but these. */
  dropExcept(kept: ReadonlySet<Socket>): void {
    for (const socket of this.#open) if (!kept.has(socket)) this.#drop(socket)
  }

  #drop(socket: Socket): void {
    this.#forget(socket)
    socket.destroy()
  }

  #forget(socket: Socket): void {
    this.#open.delete(socket)
    this.#untrusted.delete(socket)
  }
}
