import type { Socket } from 'node:net'

/**
 * The open connections, counted. Any user of this machine can open some, so when all places are taken, whoever has not
 * shown a right token yet makes room, the oldest first: nobody can shut others out by holding them.
 */
export class Connections {
  readonly #max: number
  readonly #open = new Set<Socket>()
  /** In the order they came. */
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

  /** It has shown a right token. */
  trust(socket: Socket): void {
    this.#untrusted.delete(socket)
  }

  /** Hangs up on everybody but these. */
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
