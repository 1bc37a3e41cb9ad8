import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'

/** A proxy in front of a server. When shut, connections break and new ones are refused. */
export class TcpProxy {
  readonly #target: URL
  readonly #sockets = new Set<Socket>()
  #server: Server | null = null
  #port = 0

  private constructor(address: string) {
    this.#target = new URL(address)
  }

  static async start(address: string): Promise<TcpProxy> {
    const proxy = new TcpProxy(address)
    await proxy.open()
    return proxy
  }

  get address(): string {
    const through = new URL(this.#target)
    through.host = `127.0.0.1:${this.#port}`
    return through.href
  }

  async open(): Promise<void> {
    this.#server = createServer((socket) => {
      const far = connect(Number(this.#target.port), this.#target.hostname)
      for (const [one, other] of [
        [socket, far],
        [far, socket],
      ] as const) {
        this.#sockets.add(one)
        one.pipe(other).on('error', () => {})
        one
          .on('error', () => {})
          .once('close', () => {
            this.#sockets.delete(one)
            other.destroy()
          })
      }
    })
    this.#server.listen(this.#port, '127.0.0.1')
    await once(this.#server, 'listening')
    this.#port = (this.#server.address() as AddressInfo).port
  }

  close(): void {
    this.#server?.close()
    for (const socket of this.#sockets) socket.destroy()
  }
}
