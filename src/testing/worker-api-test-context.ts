import assert from 'node:assert/strict'
import type { HeartbeatClient } from '../core/heartbeat/client.ts'
import type { UnstuckEvent } from '../core/model/event.ts'
import type { RunId, WorkerId } from '../core/model/id.ts'
import { DEFAULT_POLICY, type Policy } from '../core/model/policy.ts'
import type { Store } from '../core/store/store.ts'
import { RunApi } from '../features/commands/run-api/run-api.ts'
import type { EndpointSession } from '../features/commands/run-api/session.ts'
import { workerApi } from '../features/commands/worker-api/routes.ts'
import { WorkerSession } from '../features/commands/worker-api/worker-session.ts'
import { enqueueCrawl, registerWorker, SOURCE } from './fixtures.ts'
import { OpenApi } from './open-api.ts'
import type { Engine, TestDatabase } from './test-database.ts'
import { WORKER_API_DOCUMENT } from './worker-api-document.ts'

const document = new OpenApi(WORKER_API_DOCUMENT)

type Answer = { readonly status: number; readonly body: any }

/**
 * A command that works on many targets over HTTP. Its worker lives in the tests and sends no heartbeats. Each answer is
 * held to the OpenAPI document.
 */
export class WorkerApiClient {
  readonly worker: WorkerId
  readonly session: WorkerSession
  readonly endpoint: EndpointSession
  readonly events: UnstuckEvent[] = []
  readonly stopping = new AbortController()
  /** How many calls have come in. */
  calls = 0

  constructor(
    api: RunApi,
    store: Store,
    worker: WorkerId,
    run: RunId,
    policy: Partial<Policy> = {},
  ) {
    this.worker = worker
    this.session = new WorkerSession({
      store,
      worker,
      heartbeat: NO_HEARTBEATS,
      run: { id: run, source: SOURCE },
      policy: { ...DEFAULT_POLICY, ...policy },
      emit: (event) => this.events.push(event),
      stopping: this.stopping.signal,
    })
    this.endpoint = api.open(
      worker,
      workerApi(this.session, () => this.calls++),
    )
  }

  async get(path = '/'): Promise<Answer> {
    return this.call('GET', path)
  }

  async post(path: string, body: unknown = {}): Promise<Answer> {
    return this.call('POST', path, JSON.stringify(body))
  }

  async call(
    method: string,
    path: string,
    content?: string,
    { token = this.endpoint.token, signal }: { token?: string; signal?: AbortSignal } = {},
  ): Promise<Answer> {
    const response = await fetch(this.endpoint.url + path, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(content !== undefined && { body: content }),
      ...(signal && { signal }),
    })
    const { status } = response
    const body: unknown = await response.json()
    document.assertMatches({
      method,
      path: path.replace(/^\/targets\/[^/]+\//, '/targets/{id}/') || '/',
      sent: content === undefined ? undefined : JSON.parse(content),
      status,
      headers: Object.fromEntries(response.headers),
      body,
    })
    return { status, body }
  }

  /** Claims so many targets that are there. */
  async claim(max = 1): Promise<any[]> {
    const { body } = await this.post('/claim', { max })
    assert.equal(body.targets.length, max, JSON.stringify(body))
    return body.targets
  }

  eventTypes(): string[] {
    return this.events.map(({ type }) => type)
  }
}

const NO_HEARTBEATS: Pick<
  HeartbeatClient,
  'canClaim' | 'measure' | 'paused' | 'received' | 'released' | 'requested'
> = {
  paused: null,
  canClaim: () => true,
  measure: (_, call) => call(),
  requested: () => {},
  received: () => {},
  released: () => {},
}

/** The API, a database behind it, and commands that call it. */
export class WorkerApiTestContext {
  readonly store: Store
  readonly database: TestDatabase
  readonly #api: RunApi

  private constructor(api: RunApi, database: TestDatabase, store: Store) {
    this.#api = api
    this.database = database
    this.store = store
  }

  static async create(engine: Engine): Promise<WorkerApiTestContext> {
    const database = await engine.fresh()
    const api = new RunApi()
    await api.start()
    return new WorkerApiTestContext(api, database, await database.open())
  }

  /** Starts a run with so many targets, `t0`, `t1` …; not planned: without any. */
  run(targets: number, planned = true): Promise<RunId> {
    const keys = Array.from({ length: targets }, (_, n) => `t${n}`)
    return enqueueCrawl(this.store, keys, { planned })
  }

  /** `store`: another view of the same database, to see how the command does with it. */
  async command(
    run: RunId,
    policy: Partial<Policy> = {},
    store = this.store,
  ): Promise<WorkerApiClient> {
    const worker = await registerWorker(this.store)
    return new WorkerApiClient(this.#api, store, worker, run, policy)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#api.stop()
    await this.database[Symbol.asyncDispose]()
  }
}
