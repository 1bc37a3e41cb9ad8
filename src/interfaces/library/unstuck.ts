import { loadSettings } from '../../app/config.ts'
import { addFeatureRuns } from '../../app/open-database.ts'
import type { Settings } from '../../contracts/settings.ts'
import { HeartbeatClient } from '../../core/heartbeat/client.ts'
import { heartbeatOptions, threadTransport } from '../../core/heartbeat/transport.ts'
import {
  AlreadyDoneError,
  isUnusable,
  messageOf,
  StoppingError,
  UsageError,
} from '../../core/model/errors.ts'
import type { Emit } from '../../core/model/event.ts'
import { checkCall, type Field } from '../../core/model/fields.ts'
import { newId, type WorkerId } from '../../core/model/id.ts'
import { STOP_DEADLINE_MS, DEFAULT_POLICY, type Policy } from '../../core/model/policy.ts'
import { makePolicy, type PolicyOptions } from '../../lib/validate/policy-options.ts'
import { checkSource } from '../../lib/validate/source.ts'
import { parseDuration } from '../../core/model/time.ts'
import { cancel } from '../../operator/actions.ts'
import { openStore } from '../../core/store/open.ts'
import type { Store } from '../../core/store/store.ts'
import { assertNotDone, beginRun } from '../../core/worker/begin.ts'
import type { Crawl, DefinedCrawl } from '../../contracts/define-crawl.ts'
import { fitStored } from '../../core/worker/page-context.ts'
import { RunHandle } from '../../core/worker/run-handle.ts'
import { CrawlWorker } from '../../core/worker/worker.ts'
import type { WorkResult } from '../../presenters/results.ts'
import { WorkMeter } from '../../presenters/work.ts'
import { databaseAddress } from '../../lib/files/config-file.ts'
import { COMMAND_PROCESSES } from '../../lib/process/end-tree.ts'
import { Operator } from './operator.ts'
import { FIELDS } from './option-fields.ts'
import type { BeginOptions, WorkOptions, OpenOptions } from './options.ts'
import type * as types from './types.ts'
import type { Unstuck } from './types.ts'

type ClientOptions = {
  /** The store without tables of your own. */
  readonly ownStore: Store
  readonly db: string
  readonly worker: WorkerId
  /** For the heartbeats of this process. */
  readonly policy: Policy
  /** For the runs begun here. */
  readonly policyOptions: PolicyOptions
  readonly onEvent: Emit | undefined
  readonly log: (line: string) => void
  /** Whether SIGTERM and SIGINT stop open runs. */
  readonly signals: boolean
}

/** What `unstuck/http` and `unstuck/metrics` use of an open Unstuck. */
export type Internals = { readonly store: Store; readonly settings: Settings }

const CRAWL: Field = {
  rule: 'a crawl from defineCrawl()',
  isValid: (value) => (value as { isCrawl?: unknown } | null | undefined)?.isCrawl === true,
}

/** Unstuck in a program: begins runs and works on crawls, with one heartbeat for all of its runs. */
export class UnstuckClient extends Operator implements Unstuck {
  readonly #options: ClientOptions
  readonly #handles = new Map<string, RunHandle>()
  readonly #workers = new Map<CrawlWorker, Promise<unknown>>()
  #heartbeat: Promise<HeartbeatClient> | null = null
  /** The signal that came while a run was open. */
  #stopSignal: NodeJS.Signals | null = null

  constructor(store: Store, settings: Settings, options: ClientOptions) {
    super(store, settings)
    this.#options = options
  }

  /** @throws {UsageError} It is not from `open()` of this copy of the package. */
  static internalsOf(unstuck: Unstuck): Internals {
    if (unstuck instanceof UnstuckClient)
      return { store: unstuck.store, settings: unstuck.settings }
    throw new UsageError('`unstuck` must be what open() of this package returned.')
  }

  async begin<C = unknown, S = unknown, D = S>(
    source: string,
    options: BeginOptions<C, S, D> = {},
  ): Promise<types.RunHandle<S, C>> {
    checkSource(source)
    const begin = () => this.#begin(source, options)
    return this.call('begin()', {}, options, FIELDS.begin, begin) as Promise<types.RunHandle<S, C>>
  }

  async #begin(source: string, options: BeginOptions): Promise<RunHandle> {
    const { once = false, initialCursor = null, schema = {} } = options
    const { worker, ownStore: store, onEvent: emit, policyOptions } = this.#options
    const policy = this.settings.policyFor(source, { ...policyOptions, ...options.policy })
    if (this.#stopSignal) throw new StoppingError(this.#stopSignal)
    if (once) await assertNotDone(store, source)
    const heartbeat = await this.#ensureHeartbeat()
    const context = { ...this.context, store, heartbeat, processes: COMMAND_PROCESSES }
    const begun = await beginRun(context, { source, worker, policy })
    const { claimId, run, cursor, page } = begun.claimed
    const onEnd = (): void => {
      heartbeat.released(claimId)
      this.#handles.delete(claimId)
      this.#stopListeningIfIdle()
    }
    const progress = begun.resumed ? ((await store.run(run))?.progress ?? null) : null
    const handle = new RunHandle({
      ...begun,
      store,
      heartbeat,
      onEnd,
      emit,
      initialCursor,
      progress,
      itemSchema: schema.item,
    })
    this.#listenForSignals()
    this.#handles.set(claimId, handle)
    try {
      if (once && !begun.resumed) await assertNotDone(store, source)
      if (cursor !== null) await fitStored(schema.cursor, cursor, 'cursor', page)
      options.signal?.throwIfAborted()
    } catch (error) {
      // Another process may have finished between the first check and the claim, which keeps others out from here on.
      if (error instanceof AlreadyDoneError) await cancel(this.context, run, messageOf(error))
      await handle.release()
      throw error
    }
    return handle
  }

  async work(crawl: Crawl, options: WorkOptions = {}): Promise<WorkResult> {
    checkCall('work()', options, FIELDS.work, { crawl: [crawl, CRAWL] })
    const { signal, drain = false, start = true, stopDeadline } = options
    signal?.throwIfAborted()
    if (this.#stopSignal) throw new StoppingError(this.#stopSignal)
    const { db, onEvent, log, ownStore } = this.#options
    const meter = new WorkMeter(crawl.source)
    await meter.start(ownStore)
    const definition = crawl as DefinedCrawl
    const policy = this.settings.policyFor(crawl.source, definition.policyOptions)
    const worker = new CrawlWorker(
      { ...definition, policy },
      {
        db,
        overrides: this.settings.overrides,
        start,
        drain,
        log,
        emit: (event) => onEvent?.(event),
        stopDeadlineMs: parseDuration(stopDeadline) ?? STOP_DEADLINE_MS,
      },
    )
    const onAbort = (): void => worker.stop(messageOf(signal!.reason))
    signal?.addEventListener('abort', onAbort, { once: true })
    this.#listenForSignals()
    const working = worker.run().then(async ({ stopReason, error }) => {
      if (error) throw error
      return (await meter.finish(ownStore, stopReason)).result
    })
    this.#workers.set(worker, working)
    try {
      return await working
    } finally {
      signal?.removeEventListener('abort', onAbort)
      this.#workers.delete(worker)
      this.#stopListeningIfIdle()
    }
  }

  async close(): Promise<void> {
    for (const worker of this.#workers.keys()) worker.stop('it was closed')
    await Promise.allSettled(this.#workers.values())
    try {
      await Promise.all([...this.#handles.values()].map((handle) => handle.release()))
    } finally {
      this.#stopListening()
      process.off('beforeExit', this.#onBeforeExit)
      await this.#heartbeat?.then((heartbeat) => heartbeat.stop())
      await this.store.close()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  /** Starts with the first run; later runs share it. */
  #ensureHeartbeat(): Promise<HeartbeatClient> {
    this.#heartbeat ??= this.#startHeartbeat().catch((error: unknown) => {
      this.#heartbeat = null
      throw error
    })
    return this.#heartbeat
  }

  async #startHeartbeat(): Promise<HeartbeatClient> {
    const { db, worker, policy, onEvent } = this.#options
    const options = heartbeatOptions(worker, '', policy, this.settings.overrides)
    const heartbeat = new HeartbeatClient(threadTransport(db, options), policy, {
      emit: (event) => onEvent?.(event),
      onLost: (claims) => claims.forEach((id) => this.#handles.get(id)?.loseLease()),
      onCancelled: (claims) =>
        claims.forEach((id) => this.#handles.get(id)?.stop('the run was cancelled')),
      onFatal: (error) =>
        this.#handles.forEach((handle) =>
          isUnusable(error) ? handle.loseStore(error) : handle.stop(error.message),
        ),
    })
    await heartbeat.started()
    process.once('beforeExit', this.#onBeforeExit)
    return heartbeat
  }

  /** Only while a run or a crawl is open: otherwise a signal has its usual effect. */
  #listenForSignals(): void {
    if (!this.#options.signals || this.#handles.size + this.#workers.size > 0) return
    process.on('SIGTERM', this.#onSignal)
    process.on('SIGINT', this.#onSignal)
  }

  #stopListeningIfIdle(): void {
    if (this.#handles.size + this.#workers.size === 0) this.#stopListening()
  }

  #stopListening(): void {
    process.off('SIGTERM', this.#onSignal)
    process.off('SIGINT', this.#onSignal)
  }

  /** Stops every run and crawl. A second signal has its usual effect. */
  readonly #onSignal = (signal: NodeJS.Signals): void => {
    this.#stopListening()
    this.#stopSignal = signal
    this.#handles.forEach((handle) => handle.stop(signal))
    for (const worker of this.#workers.keys()) worker.stop(signal)
  }

  /** The event loop drained without `close()`. */
  readonly #onBeforeExit = (): void => {
    void this.close()
  }
}

/**
 * Opens Unstuck in your own code, with the policies and tables of the config.
 * @throws {UsageError} with every problem of the options and the config.
 * @throws {DatabaseError}
 * @example await using unstuck = await open()
 */
export async function open(options: OpenOptions = {}): Promise<Unstuck> {
  checkCall('open()', options, FIELDS.open)
  const { policy, mistakes } = makePolicy(options.policy, DEFAULT_POLICY)
  if (mistakes.length > 0)
    throw new UsageError(`open() cannot use this policy: ${mistakes.join('; ')}.`)
  const { onEvent, signal, signals = true } = options
  const log = (line: string): void => void options.log?.(line)
  signal?.throwIfAborted()
  const settings = await loadSettings(process.cwd(), options.config)
  const db = databaseAddress(options.db, settings)
  const worker = newId()
  const ownStore = await openStore(db, { writer: worker })
  const store = await addFeatureRuns(ownStore, {
    settings,
    address: db,
    log: (message) => {
      onEvent?.({ type: 'store_error', message })
      log(message)
    },
  })
  const policyOptions = options.policy ?? {}
  const own = { ownStore, db, worker, policy, policyOptions, onEvent, log, signals }
  const client = new UnstuckClient(store, settings, own)
  if (!signal?.aborted) return client
  await client.close()
  throw signal.reason
}
