import { hostname } from 'node:os'
import process from 'node:process'
import { CONNECTIONS_MISTAKE, isConnections } from '../../core/model/address.ts'
import { EXIT, messageOf, UsageError } from '../../core/model/errors.ts'
import { newId, shortId, type Id, type WorkerId } from '../../core/model/id.ts'
import {
  DEFAULT_POLICY,
  makePolicy,
  type Policy,
  type PolicyOptions,
} from '../../core/model/policy.ts'
import { isLive, openTargets } from '../../core/model/run.ts'
import { redact } from '../../core/model/redact.ts'
import { safeText } from '../../core/events/safe-text.ts'
import { databaseAddress } from '../../app/config-file.ts'
import { openStore } from '../../core/store/open.ts'
import type { Storage, Store } from '../../core/store/store.ts'
import { RequestBook } from './request-queue-store.ts'
import { StopSignals } from './stop-signals.ts'

export type DepotOptions = {
  /** `sqlite:PATH` or `postgres://…`; else UNSTUCK_DB, else the default. */
  db?: string
  /** PostgreSQL connections for the storages, 2 by default. The heartbeat has two more. */
  connections?: number
  /** For the runs of its queues. */
  policy?: PolicyOptions
  /** The key of an item: one that is pushed again replaces the one before, in its place. */
  itemKey?: ItemKey
  /** False: SIGTERM and SIGINT are none of its business. */
  signals?: boolean
  /** Hears what happens, a line each; else stderr does. */
  log?: (line: string) => unknown
}

/** Undefined, null, NaN or an empty text: this item has none, and is its own. */
export type ItemKey = (
  item: Record<string, unknown>,
  dataset: string,
) => string | number | null | undefined

/** A crawler that is at work in this process, as far as it can be asked to stop. */
export type StoppableCrawler = {
  readonly running?: boolean
  /** The one that it works on, once it knows. */
  readonly requestQueue?: { readonly id?: string }
  stop(reason?: string): void
}

/** What all storages of a process share: the database, the queues it works on, and what a signal does to them. */
export class Depot {
  readonly store: Store
  readonly itemKey: ItemKey
  readonly log: (line: string) => void
  /** In whose name the books are kept: they are tidied up when it retires. */
  #writer: WorkerId | null
  readonly #db: string
  readonly #policy: Policy
  readonly #books = new Map<Id, RequestBook>()
  readonly #alive = new Set<RequestBook>()
  readonly #signals: StopSignals
  readonly #hears: boolean
  #isLeftSaid = false
  readonly #crawlers = new Set<StoppableCrawler>()
  /** Of these, those that have not ended: in Crawlee one is running until its storage has come to rest. */
  readonly #atWork = new Set<StoppableCrawler>()
  /** Queues, by id, that a crawler has left because it had done as much as it was asked to: by what it was told so. */
  readonly #atLimit = new Map<Id, string>()

  private constructor(
    store: Store,
    options: DepotOptions & { db: string; id: Id; settled: Policy; log: (line: string) => void },
  ) {
    this.store = store
    this.log = options.log
    this.itemKey = options.itemKey ?? (() => undefined)
    this.#writer = options.id
    this.#db = options.db
    this.#policy = options.settled
    this.#hears = options.signals !== false
    this.#signals = new StopSignals({
      stop: () => void this.#stop(),
      handBack: () => this.#handBack(() => true),
      log: this.log,
    })
    process.once('beforeExit', this.#onIdle)
  }

  static async open(options: DepotOptions): Promise<Depot> {
    const { policy, mistakes } = makePolicy(options.policy, DEFAULT_POLICY)
    if (mistakes.length > 0)
      throw new UsageError(`crawleeStorage() cannot use this policy: ${mistakes.join('; ')}.`)
    const { connections } = options
    if (connections !== undefined && !isConnections(connections))
      throw new UsageError(`crawleeStorage(): connections ${CONNECTIONS_MISTAKE}.`)
    const db = databaseAddress(options.db, { connections })
    const [id, say] = [newId(), options.log ?? toStderr]
    // Addresses come from pages.
    const log = (line: string): void => void say(safeText(redact(line)))
    const store = await openStore(db, { writer: id })
    for (const remark of store.remarks) log(remark)
    return new Depot(store, { ...options, db, id, settled: policy, log })
  }

  get isStopping(): boolean {
    return this.#signals.stoppedBy !== null
  }

  /** The requests of a queue: one book per queue and process, however many ask for it. */
  book(queue: Storage): RequestBook {
    const known = this.#books.get(queue.id)
    if (known) return known
    const book: RequestBook = new RequestBook(queue, {
      store: this.store,
      db: this.#db,
      policy: this.#policy,
      actor: `process ${process.pid} on ${hostname()}`,
      nextWorker: () => this.#nextWorker(),
      log: this.log,
      isStopping: () => this.isStopping,
      onEnded: ({ id }, left) => {
        const short = shortId(id)
        this.log(`run ${short} was ended with ${left} requests left: \`unstuck resume ${short}\``)
        process.exitCode ||= EXIT.resumable
      },
      onLife: (isAlive) => this.#onLife(book, isAlive),
    })
    this.#books.set(queue.id, book)
    return book
  }

  /** It is about to begin: a stop that has been asked for holds for it as well. */
  begins(crawler: StoppableCrawler): void {
    for (const one of this.#crawlers) if (!one.running) this.#crawlers.delete(one)
    this.#crawlers.add(crawler)
    this.#atWork.add(crawler)
    if (this.isStopping) crawler.stop()
  }

  /** It has ended: its storage comes to rest next. `limit`: the option that ended it, if its next start is to begin anew. */
  ends(crawler: StoppableCrawler, limit: string | null = null): void {
    this.#atWork.delete(crawler)
    const queue = crawler.requestQueue?.id
    if (queue !== undefined && limit !== null) this.#atLimit.set(queue, limit)
  }

  /**
   * Hands back what nobody has begun, and ends the signs of life where nothing is in hand: of the queues that no crawler
   * of this process is at work on. Used again, they wake up.
   */
  async rest(): Promise<void> {
    const inUse = [...this.#atWork].map(({ requestQueue }) => requestQueue?.id)
    // One that does not say which queue is its own may be fetching ahead from any.
    if (inUse.includes(undefined)) return
    const books = [...this.#books.values()].filter(({ queue }) => !inUse.includes(queue.id))
    await Promise.all(books.map((book) => book.worker.rest()))
    for (const book of books) await this.#endAtLimit(book)
    if (this.isStopping && this.#alive.size === 0) await this.#sayWhatIsLeft()
  }

  async close(): Promise<void> {
    process.off('beforeExit', this.#onIdle)
    await this.#handBack(() => true)
    await Promise.all([...this.#books.values()].map((book) => book.worker.rest()))
    await this.store.close()
  }

  async #endAtLimit(book: RequestBook): Promise<void> {
    const limit = this.#atLimit.get(book.queue.id)
    if (limit === undefined) return
    this.#atLimit.delete(book.queue.id)
    await book.endAtLimit(limit)
  }

  #nextWorker(): WorkerId {
    const worker = this.#writer ?? newId()
    this.#writer = null
    return worker
  }

  #onLife(book: RequestBook, isAlive: boolean): void {
    if (isAlive) this.#alive.add(book)
    else this.#alive.delete(book)
    if (!this.#hears) return
    if (this.#alive.size === 0) this.#signals.ignore()
    else if (isAlive && !this.isStopping) this.#signals.hear()
  }

  async #stop(): Promise<void> {
    for (const crawler of this.#crawlers) if (crawler.running) crawler.stop()
    await this.#handBack(({ isBegun }) => !isBegun)
    if (this.#crawlers.size > 0) return
    // No crawler can be asked to stop: when the pages in hand are done, there is nothing to wait for.
    const isDone = (): boolean =>
      [...this.#books.values()].every(({ worker }) => worker.inHand.length === 0)
    const looking = setInterval(() => {
      if (!isDone()) return
      clearInterval(looking)
      void this.rest().finally(() => process.exit())
    }, 50)
  }

  async #handBack(which: (request: { isBegun: boolean }) => boolean): Promise<void> {
    const workers = [...this.#books.values()].map(({ worker }) => worker)
    await Promise.all(workers.map((worker) => worker.handBack(worker.inHand.filter(which)))).catch(
      (error: unknown) => this.log(`could not hand back: ${messageOf(error)}`),
    )
  }

  async #sayWhatIsLeft(): Promise<void> {
    if (this.#isLeftSaid) return
    this.#isLeftSaid = true
    const by = this.#signals.stoppedBy
    for (const book of this.#books.values()) {
      const run = await book.run()
      const left = run ? openTargets(run.counts) : 0
      // One that was ended, as with a queue that was dropped, has nothing left that anybody wants.
      if (!run || !isLive(run.status) || left === 0) continue
      const { name } = book.queue
      this.log(`stopped by ${by}: ${left} requests of ${name} are left. Start again to go on.`)
      process.exitCode ||= EXIT.resumable
    }
  }

  /** The program has nothing left to do and forgot to say goodbye. */
  readonly #onIdle = (): void => {
    this.#atWork.clear()
    void this.rest()
  }
}

function toStderr(line: string): void {
  process.stderr.write(`[unstuck] ${line}\n`)
}
