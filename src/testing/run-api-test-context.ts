import assert from 'node:assert/strict'
import { request, type IncomingHttpHeaders } from 'node:http'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { RunId } from '../core/model/id.ts'
import type { Policy } from '../core/model/policy.ts'
import { runSession, type RunEnd } from '../features/commands/run-api/routes.ts'
import type { EndpointSession } from '../features/commands/run-api/session.ts'
import { RunHandle } from '../core/worker/run-handle.ts'
import type { Store } from '../core/store/store.ts'
import { RunApi, type RunApiOptions } from '../features/commands/run-api/run-api.ts'
import { begin, registerWorker, SOURCE } from './fixtures.ts'
import { OpenApi } from './open-api.ts'
import type { Engine, TestDatabase } from './test-database.ts'

export const RUN_API_DOCUMENT = join(
  import.meta.dirname,
  '../../docs/reference/run-api.openapi.json',
)
const document = new OpenApi(RUN_API_DOCUMENT)
/** What has not come by then will not come. */
const TIMEOUT_MS = 20_000

export type ApiResponse = {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: any
}

export type CallOptions = {
  readonly token?: string | null
  /** Sent as it is, instead of as JSON. */
  readonly raw?: string | Buffer
  readonly headers?: Readonly<Record<string, string | string[]>>
}

/** A command that calls the API of its run. Each of its answers is held to the OpenAPI document. */
export class RunApiClient {
  readonly admission: EndpointSession
  readonly handle: RunHandle
  readonly ends: RunEnd[] = []
  calls = 0
  isStopping = false

  constructor(api: RunApi, handle: RunHandle, callsMax?: number) {
    this.handle = handle
    const session = runSession(handle, {
      onCall: () => void this.calls++,
      isStopping: () => this.isStopping,
      onEnd: (end) => void this.ends.push(end),
    })
    this.admission = api.open(handle.id, { ...session, ...(callsMax && { calls: callsMax }) })
  }

  get(path = '', options?: CallOptions): Promise<ApiResponse> {
    return this.call('GET', path, undefined, options)
  }

  post(path: string, body?: unknown, options?: CallOptions): Promise<ApiResponse> {
    return this.call('POST', path, body, options)
  }

  /** Rejects when the connection breaks before an answer. */
  async call(
    method: string,
    path: string,
    body?: unknown,
    { token = this.admission.token, raw, headers = {} }: CallOptions = {},
  ): Promise<ApiResponse> {
    const { url, socket } = this.admission
    const content = raw ?? (body === undefined ? undefined : JSON.stringify(body))
    const answered = await send(url + path, {
      method,
      agent: false,
      signal: AbortSignal.timeout(TIMEOUT_MS),
      ...(socket !== undefined && { socketPath: socket }),
      headers: {
        ...(token !== null && { authorization: `Bearer ${token}` }),
        ...(content !== undefined && {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(content),
        }),
        ...headers,
      },
      content,
    })
    const sent = asJson(content)
    document.assertMatches({ method, path: path || '/', sent, ...answered })
    return answered
  }

  /** A connection of one's own, for what no client would send. */
  connect(): Promise<RawConnection> {
    const { hostname, port } = new URL(this.admission.url)
    return RawConnection.open(hostname, Number(port))
  }

  /** The start of a request, up to and without the empty line. */
  head(method: string, path: string, ...headers: string[]): string {
    const { host, pathname } = new URL(this.admission.url)
    const lines = [`${method} ${pathname}${path} HTTP/1.1`, `Host: ${host}`, ...headers]
    return [...lines, `Authorization: Bearer ${this.admission.token}`].join('\r\n')
  }
}

/** Says of a refusal what a program and a person hear of it. */
export function errorOf({ status, body }: ApiResponse): [number, string, string] {
  return [status, body.error?.code, body.error?.message]
}

export function assertRejected(
  answered: ApiResponse,
  status: number,
  code: string,
  message: RegExp = /./,
): void {
  assert.deepEqual(errorOf(answered).slice(0, 2), [status, code], JSON.stringify(answered.body))
  assert.match(answered.body.error.message, message)
}

function asJson(content: string | Buffer | undefined): unknown {
  try {
    return JSON.parse(String(content))
  } catch {
    return undefined
  }
}

type RequestOptions = Parameters<typeof request>[1] & { content?: string | Buffer | undefined }

function send(url: string, { content, ...options }: RequestOptions): Promise<ApiResponse> {
  return new Promise((resolve, reject) => {
    const call = request(url, options, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk)).once('error', reject)
      response.once('end', () => {
        const { statusCode: status = 0, headers } = response
        const text = Buffer.concat(chunks).toString()
        resolve({ status, headers, body: text === '' ? undefined : JSON.parse(text) })
      })
    })
    call.once('error', reject)
    call.end(content)
  })
}

/** Bytes to the server, and what comes back. */
export class RawConnection implements Disposable {
  readonly socket: Socket
  received = ''
  readonly #ended: Promise<void>

  private constructor(socket: Socket) {
    this.socket = socket
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#ended = promise
    socket.setEncoding('latin1').on('data', (more: string) => (this.received += more))
    socket.once('close', () => resolve()).on('error', () => {})
  }

  static open(host: string, port: number): Promise<RawConnection> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, host)
      socket.once('error', reject).once('connect', () => resolve(new RawConnection(socket)))
    })
  }

  write(text: string | Buffer): void {
    this.socket.write(text)
  }

  /** Everything that came until the server hung up, held to the document. */
  async response(): Promise<ApiResponse> {
    await this.closed()
    const [head = '', text = ''] = this.received.split('\r\n\r\n')
    const [first = '', ...lines] = head.split('\r\n')
    const headers = Object.fromEntries(
      lines
        .map((line) => line.split(': ') as [string, string])
        .map(([k, v]) => [k.toLowerCase(), v]),
    )
    const status = Number(/^HTTP\/1\.1 (\d+) /.exec(first)?.[1])
    const body = JSON.parse(text)
    document.assertMatches({ method: '', path: '', status, headers, body })
    return { status, headers, body }
  }

  async closed(): Promise<void> {
    const isOpen = await Promise.race([this.#ended, sleep(TIMEOUT_MS, true, { ref: false })])
    assert.ok(!isOpen, 'the server did not hang up')
  }

  [Symbol.dispose](): void {
    this.socket.destroy()
  }
}

/** An API with a database behind it, and runs whose commands call it. */
export class RunApiTestContext {
  readonly api: RunApi
  /** Fewer calls of a run under way at once. */
  callsMax: number | undefined
  readonly database: TestDatabase
  readonly store: Store
  readonly log: string[]

  private constructor(api: RunApi, database: TestDatabase, store: Store, log: string[]) {
    this.api = api
    this.database = database
    this.store = store
    this.log = log
  }

  static async create(engine: Engine, options: RunApiOptions = {}): Promise<RunApiTestContext> {
    const database = await engine.fresh()
    return RunApiTestContext.createOn(database, await database.open(), options)
  }

  /** With a store that reaches the database in a way of its own. */
  static async createOn(
    database: TestDatabase,
    store: Store,
    options: RunApiOptions = {},
  ): Promise<RunApiTestContext> {
    const log: string[] = []
    const api = new RunApi({ log: (line) => void log.push(line), ...options })
    await api.start()
    return new RunApiTestContext(api, database, store, log)
  }

  async begin(source: string = SOURCE, policy: Partial<Policy> = {}): Promise<RunApiClient> {
    const handle = await this.handle(source, policy)
    return new RunApiClient(this.api, handle, this.callsMax)
  }

  async handle(source: string = SOURCE, policy: Partial<Policy> = {}): Promise<RunHandle> {
    const worker = await registerWorker(this.store, { source })
    const begun = await begin(this.store, worker, { source, policy })
    assert.ok(begun.claimed, 'another run is in the way')
    const { progress } = await this.run(begun.claimed.run)
    return new RunHandle({ ...begun, progress, store: this.store, onEnd: () => {} })
  }

  async run(id: RunId) {
    const run = await this.store.run(id)
    assert.ok(run)
    return run
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.api.stop()
    await this.database[Symbol.asyncDispose]()
  }
}
