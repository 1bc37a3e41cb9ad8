import { hostname } from 'node:os'
import process from 'node:process'
import { CONNECTIONS_MISTAKE, isConnections } from '../../core/model/limits.ts'
import { messageOf, UsageError } from '../../core/model/errors.ts'
import { EXIT } from '../../core/model/exit-codes.ts'
import { newId, shortId, type Id, type WorkerId } from '../../core/model/id.ts'
import { DEFAULT_POLICY, type Policy } from '../../core/model/policy.ts'
import { makePolicy, type PolicyOptions } from '../../lib/validate/policy-options.ts'
import { isLive, countOpenTargets } from '../../core/model/run.ts'
import { redact } from '../../core/model/redact.ts'
import { safeText } from '../../lib/text/safe-text.ts'
import { databaseAddress } from '../../lib/files/config-file.ts'
import { openStore } from '../../core/store/open.ts'
import { withRetries, withStorages, type Storage, type StorageDatabase } from './store/store.ts'
import { RequestQueueStore } from './request-queue-store.ts'
import { StopSignals } from './stop-signals.ts'

/** Options of the storages for Crawlee that do not depend on its version. */
export type CrawleeSessionOptions = {
  /** `sqlite:PATH` or `postgres://…`. @default `UNSTUCK_DB`, else `'sqlite:.unstuck/unstuck.db'` */
  db?: string | undefined
  /** PostgreSQL connections for the storages. The heartbeat has two more. @default 2 */
  connections?: number | undefined
  /** For the runs of its queues. @default {} */
  policy?: PolicyOptions | undefined
  /** Returns the key of an item: an item with the same key replaces the earlier one. @default each item is its own */
  itemKey?: ItemKey | undefined
  /** Whether SIGTERM and SIGINT stop its crawlers. Set to `false` to handle the signals yourself. @default true */
  signals?: boolean | undefined
  /** Gets a line for each event. @default stderr */
  log?: ((line: string) => unknown) | undefined
}

/** Returns the key of an item. Undefined, null, NaN or an empty text: the item has none, and is stored by itself. */
export type ItemKey = (
  item: Record<string, unknown>,
  dataset: string,
) => string | number | null | undefined

/** A crawler of this process that can be stopped. */
export type StoppableCrawler = {
  readonly running?: boolean
  /** The queue that it works on, once it is open. */
  readonly requestQueue?: { readonly id?: string }
  stop(reason?: string): void
}

/** What all storages of a process share: the database, its queues, and the handling of signals. */
export class CrawleeSession {
  readonly store: StorageDatabase
  readonly itemKey: ItemKey
  readonly log: (line: string) => void
  /** The writer of the counters, which becomes the first worker: they are folded when it retires. */
  #writerId: WorkerId | null
  readonly #db: string
  readonly #policy: Policy
  readonly #queueStores = new Map<Id, RequestQueueStore>()
  readonly #active = new Set<RequestQueueStore>()
  readonly #signals: StopSignals
  readonly #handlesSignals: boolean
  #isRemainderLogged = false
  readonly #crawlers = new Set<StoppableCrawler>()
  /** Those that have not ended. In Crawlee `running` stays true until the storage was torn down. */
  readonly #running = new Set<StoppableCrawler>()
  /** The option that ended the crawl of a queue, by the queue's id. */
  readonly #reachedLimits = new Map<Id, string>()

  private constructor(
    store: StorageDatabase,
    options: CrawleeSessionOptions & {
      db: string
      id: Id
      resolvedPolicy: Policy
      log: (line: string) => void
    },
  ) {
    this.store = store
    this.log = options.log
    this.itemKey = options.itemKey ?? (() => undefined)
    this.#writerId = options.id
    this.#db = options.db
    this.#policy = options.resolvedPolicy
    this.#handlesSignals = options.signals !== false
    this.#signals = new StopSignals({
      stop: () => void this.#stop(),
      release: () => this.#release(() => true),
      log: this.log,
    })
    process.once('beforeExit', this.#onBeforeExit)
  }

  static async open(options: CrawleeSessionOptions): Promise<CrawleeSession> {
    const { policy, mistakes } = makePolicy(options.policy, DEFAULT_POLICY)
    if (mistakes.length > 0)
      throw new UsageError(`crawleeStorage() cannot use this policy: ${mistakes.join('; ')}.`)
    const { connections } = options
    if (connections !== undefined && !isConnections(connections))
      throw new UsageError(`crawleeStorage(): connections ${CONNECTIONS_MISTAKE}.`)
    const db = databaseAddress(options.db, { connections })
    const [id, write] = [newId(), options.log ?? toStderr]
    // Addresses come from pages.
    const log = (line: string): void => void write(safeText(redact(line)))
    const store = withRetries(await withStorages(await openStore(db, { writer: id })))
    for (const warning of store.warnings) log(warning)
    return new CrawleeSession(store, { ...options, db, id, resolvedPolicy: policy, log })
  }

  get isStopping(): boolean {
    return this.#signals.stoppedBy !== null
  }

  /** Returns the requests of a queue: the same object for each queue. */
  queueStore(queue: Storage): RequestQueueStore {
    const known = this.#queueStores.get(queue.id)
    if (known) return known
    const queueStore: RequestQueueStore = new RequestQueueStore(queue, {
      store: this.store,
      db: this.#db,
      policy: this.#policy,
      actor: `process ${process.pid} on ${hostname()}`,
      nextWorkerId: () => this.#nextWorkerId(),
      log: this.log,
      isStopping: () => this.isStopping,
      onRunEnded: ({ id }, left) => {
        const short = shortId(id)
        this.log(`run ${short} was ended with ${left} requests left: \`unstuck resume ${short}\``)
        process.exitCode ||= EXIT.resumable
      },
      onActiveChange: (isAlive) => this.#onActiveChange(queueStore, isAlive),
    })
    this.#queueStores.set(queue.id, queueStore)
    return queueStore
  }

  /** A crawler is about to begin. If this process is stopping, it is stopped too. */
  crawlerStarted(crawler: StoppableCrawler): void {
    for (const one of this.#crawlers) if (!one.running) this.#crawlers.delete(one)
    this.#crawlers.add(crawler)
    this.#running.add(crawler)
    if (this.isStopping) crawler.stop()
  }

  /** A crawler has ended. `limit`: the option that ended it, if its next start begins a new crawl. */
  crawlerEnded(crawler: StoppableCrawler, limit: string | null = null): void {
    this.#running.delete(crawler)
    const queue = crawler.requestQueue?.id
    if (queue !== undefined && limit !== null) this.#reachedLimits.set(queue, limit)
  }

  /**
   * Releases requests that were not started, and ends heartbeats without a claim, for the queues that no crawler of this
   * process uses. The next use starts them again.
   */
  async releaseIdle(): Promise<void> {
    const inUse = [...this.#running].map(({ requestQueue }) => requestQueue?.id)
    // A crawler without a known queue may be prefetching from any.
    if (inUse.includes(undefined)) return
    const queueStores = [...this.#queueStores.values()].filter(
      ({ queue }) => !inUse.includes(queue.id),
    )
    await Promise.all(queueStores.map((queueStore) => queueStore.worker.stopIfIdle()))
    for (const queueStore of queueStores) {
      const { id } = queueStore.queue
      const limit = this.#reachedLimits.get(id)
      if (this.#reachedLimits.delete(id)) await queueStore.endAtLimit(limit!)
    }
    if (this.isStopping && this.#active.size === 0) await this.#logRemaining()
  }

  async close(): Promise<void> {
    process.off('beforeExit', this.#onBeforeExit)
    await this.#release(() => true)
    await Promise.all(
      [...this.#queueStores.values()].map((queueStore) => queueStore.worker.stopIfIdle()),
    )
    await this.store.close()
  }

  #nextWorkerId(): WorkerId {
    const worker = this.#writerId ?? newId()
    this.#writerId = null
    return worker
  }

  #onActiveChange(queueStore: RequestQueueStore, isAlive: boolean): void {
    if (isAlive) this.#active.add(queueStore)
    else this.#active.delete(queueStore)
    if (!this.#handlesSignals) return
    if (this.#active.size === 0) this.#signals.unlisten()
    else if (isAlive && !this.isStopping) this.#signals.listen()
  }

  async #stop(): Promise<void> {
    for (const crawler of this.#crawlers) if (crawler.running) crawler.stop()
    await this.#release(({ isStarted }) => !isStarted)
    if (this.#crawlers.size > 0) return
    // No crawler can be stopped: when the current pages are done, there is nothing to wait for.
    const isDone = (): boolean =>
      [...this.#queueStores.values()].every(({ worker }) => worker.claimed.length === 0)
    const timer = setInterval(() => {
      if (!isDone()) return
      clearInterval(timer)
      void this.releaseIdle().finally(() => process.exit())
    }, 50)
  }

  async #release(which: (request: { isStarted: boolean }) => boolean): Promise<void> {
    const workers = [...this.#queueStores.values()].map(({ worker }) => worker)
    await Promise.all(workers.map((worker) => worker.release(worker.claimed.filter(which)))).catch(
      (error: unknown) => this.log(`requests could not be released: ${messageOf(error)}`),
    )
  }

  async #logRemaining(): Promise<void> {
    if (this.#isRemainderLogged) return
    this.#isRemainderLogged = true
    const signal = this.#signals.stoppedBy
    for (const queueStore of this.#queueStores.values()) {
      const run = await queueStore.run()
      const left = run ? countOpenTargets(run.counts) : 0
      // A run that was ended, as by dropping its queue, has nothing left to do.
      if (!run || !isLive(run.status) || left === 0) continue
      const { name } = queueStore.queue
      this.log(
        `stopped by ${signal}: ${left} requests of ${name} are left. Start again to continue.`,
      )
      process.exitCode ||= EXIT.resumable
    }
  }

  /** The event loop drained without `close()`. */
  readonly #onBeforeExit = (): void => {
    this.#running.clear()
    void this.releaseIdle()
  }
}

function toStderr(line: string): void {
  process.stderr.write(`[unstuck] ${line}\n`)
}
