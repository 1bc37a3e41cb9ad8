import { createServer, type AddressInfo, type Socket } from 'node:net'
import { Client } from 'pg'

/**
 * A connection pooler in transaction mode, as many servers have one in front: a client gets a server connection for
 * one transaction only, and the next one is another. What a session would keep, it loses.
 */

export type Pooler = AsyncDisposable & { readonly url: string }

const SSL_REQUEST = 80_877_103
const IDLE = 'I'.charCodeAt(0)

export async function startPooler(server: string, connections = 3): Promise<Pooler> {
  const pool = new ServerPool(server)
  for (let n = 0; n < connections; n++) await pool.add()

  const clients = new Set<Socket>()
  const listener = createServer((socket) => {
    clients.add(socket)
    socket.on('close', () => clients.delete(socket))
    serve(socket, pool)
  })
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))

  const url = new URL(server)
  url.hostname = '127.0.0.1'
  url.port = String((listener.address() as AddressInfo).port)
  return {
    url: url.href,
    async [Symbol.asyncDispose]() {
      for (const socket of clients) socket.destroy()
      pool.end()
      await new Promise((resolve) => listener.close(resolve))
    },
  }
}

/** Server connections, logged in. They are handed out in turn. */
class ServerPool {
  readonly #server: string
  readonly #all = new Set<Socket>()
  readonly #free: Socket[] = []
  readonly #waiting: ((socket: Socket) => void)[] = []
  #isEnding = false

  constructor(server: string) {
    this.#server = server
  }

  /** The driver logs in; from then on the pooler speaks on the socket itself. */
  async add(): Promise<void> {
    const client = new Client({ connectionString: this.#server })
    client.on('error', () => {})
    await client.connect()
    const { stream } = (client as unknown as { connection: { stream: Socket } }).connection
    stream.removeAllListeners('data')
    this.#all.add(stream)
    this.release(stream)
  }

  acquire(): Promise<Socket> {
    const socket = this.#free.shift()
    if (socket) return Promise.resolve(socket)
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  release(socket: Socket): void {
    const next = this.#waiting.shift()
    if (next) next(socket)
    else this.#free.push(socket)
  }

  /** The client left in the middle of a transaction: the connection must not be reused. */
  discard(socket: Socket): void {
    this.#all.delete(socket)
    socket.destroy()
    if (!this.#isEnding) void this.add()
  }

  end(): void {
    this.#isEnding = true
    for (const socket of this.#all) socket.destroy()
  }
}

function serve(client: Socket, pool: ServerPool): void {
  let isLoggedIn = false
  let server: Socket | null = null
  /** Requests that the server has not declared itself ready after. */
  let unanswered = 0
  let asked: Buffer[] = []

  const fromClient = parseMessages((message) => {
    const type = String.fromCharCode(message[0]!)
    if (type === 'X') return void client.end()
    if (type === 'Q' || type === 'S') unanswered++
    if (server) server.write(message)
    else if (asked.push(message) === 1) void pool.acquire().then(begin)
  })

  const hangUp = (): void => void client.destroy()

  const begin = (socket: Socket): void => {
    if (client.destroyed) return pool.release(socket)
    server = socket
    const fromServer = parseMessages((message) => {
      client.write(message)
      if (String.fromCharCode(message[0]!) !== 'Z') return
      unanswered--
      if (message[5] !== IDLE || unanswered > 0) return
      server = null
      socket.off('data', fromServer)
      socket.off('close', hangUp)
      pool.release(socket)
    })
    socket.on('data', fromServer)
    socket.on('close', hangUp)
    for (const message of asked) socket.write(message)
    asked = []
  }

  client.on('data', (chunk: Buffer) => {
    if (isLoggedIn) return fromClient(chunk)
    if (chunk.readInt32BE(4) === SSL_REQUEST) return void client.write('N')
    isLoggedIn = true
    client.write(STARTUP_RESPONSE)
  })
  client.on('error', () => {})
  client.on('close', () => {
    if (server) pool.discard(server)
  })
}

/** Cuts a stream of bytes into messages: a letter, a length, and as many bytes. */
function parseMessages(handle: (message: Buffer) => void): (chunk: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0)
  return (chunk) => {
    rest = Buffer.concat([rest, chunk])
    while (rest.length >= 5) {
      const length = 1 + rest.readInt32BE(1)
      if (rest.length < length) return
      const message = rest.subarray(0, length)
      rest = rest.subarray(length)
      handle(message)
    }
  }
}

function message(type: string, ...parts: (number | string)[]): Buffer {
  const body = Buffer.concat(
    parts.map((part) => {
      if (typeof part === 'string') return Buffer.from(part)
      const number = Buffer.alloc(4)
      number.writeInt32BE(part)
      return number
    }),
  )
  const head = Buffer.alloc(5)
  head.write(type)
  head.writeInt32BE(4 + body.length, 1)
  return Buffer.concat([head, body])
}

/** Logged in, a made-up process id, ready. */
const STARTUP_RESPONSE = Buffer.concat([
  message('R', 0),
  message('S', 'server_version\0', '18.0\0'),
  message('S', 'client_encoding\0', 'UTF8\0'),
  message('S', 'standard_conforming_strings\0', 'on\0'),
  message('K', 4_000_001, 42),
  message('Z', 'I'),
])
