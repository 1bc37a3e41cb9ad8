import { AlreadyRunningError, RefusedError, UsageError } from '../../core/model/errors.ts'
import { newId, shortId, type RunId } from '../../core/model/id.ts'
import type { Policy } from '../../core/model/policy.ts'
import { isLive, type Run } from '../../core/model/run.ts'
import { checkSource } from '../../lib/validate/source.ts'
import type { TargetInput, Target } from '../../core/model/target.ts'
import type { Store } from '../../core/store/store.ts'
import type { Storage } from './store/store.ts'

const SOURCE_PREFIX = 'crawlee/'

/** Returns the source of a queue's runs. */
export function queueSource(queue: string): string {
  const source = `${SOURCE_PREFIX}${queue}`
  checkSource(source)
  return source
}

export type QueueRunOptions = {
  readonly store: Store
  readonly policy: Policy
  readonly actor: string
  readonly log: (message: string) => void
}

/** Adding a request reopens an ended run; it may end again meanwhile, so this is tried several times. */
const ATTEMPTS_MAX = 10
const MORE_REQUESTS = 'more requests came into its queue'

/** The run whose targets are the requests of a queue. The first request creates it. */
export class QueueRun {
  readonly source: string
  readonly #queue: Storage
  readonly #options: QueueRunOptions
  #id: RunId | null = null
  #isPlanned = false
  /** This process has made it live, with its policy. */
  #isEnsured = false
  #isCancelled = false

  constructor(queue: Storage, options: QueueRunOptions) {
    this.source = queueSource(queue.name)
    this.#queue = queue
    this.#options = options
  }

  /** Reads the run; null before the first request. */
  async load(): Promise<Run | null> {
    const { store } = this.#options
    const known = this.#id && (await store.run(this.#id))
    if (known) return known
    // Not loaded yet, or deleted.
    this.#id = null
    this.#isEnsured = false
    const newest = await store.runs({ source: this.source, limit: 1 })
    const [run] = newest.items
    return run && this.#isOurs(run) ? this.#use(run) : null
  }

  async find(keys: readonly string[]): Promise<Target[]> {
    const run = this.#id ?? (await this.load())?.id
    if (run === undefined) return []
    return this.#options.store.targetsByKey(run, keys)
  }

  /** Adds targets to a live run, reopening an ended one. */
  async plan(targets: readonly TargetInput[]): Promise<void> {
    const { store } = this.#options
    for (let tries = 1; ; tries++) {
      const run = await this.#ensureLive()
      try {
        await store.plan(run, targets)
        if (!this.#isPlanned) await store.finishPlanning(run)
        this.#isPlanned = true
        return
      } catch (error) {
        const now = await this.load()
        if (!(error instanceof UsageError) || !now || isLive(now.status) || tries === ATTEMPTS_MAX)
          throw error
        await this.#reopen(now, MORE_REQUESTS)
      }
    }
  }

  /** Reopens an ended run with requests left, unless it was ended while this process worked on it. */
  async resume(): Promise<void> {
    if (this.#isCancelled) return
    this.#isEnsured = false
    await this.#ensureLive('its crawler was started again')
  }

  /** An operator ended it while this process worked on it. */
  get isCancelled(): boolean {
    return this.#isCancelled
  }

  /** An operator ended it: requests found on the current pages are not added. */
  markCancelled(): void {
    if (!this.#isCancelled && this.#id !== null)
      this.#options.log(`run ${shortId(this.#id)} has ended: finishing its pages in progress`)
    this.#isCancelled = true
  }

  /** Cancels the run if it is live, and keeps it for inspection. Returns whether it was live. */
  async end(because: string): Promise<boolean> {
    const run = await this.load()
    if (!run || !isLive(run.status)) return false
    const { store, actor } = this.#options
    return store.moveRun({
      run: run.id,
      to: 'cancelled',
      action: 'cancel',
      evidence: null,
      expected: {},
      actor,
      because,
    })
  }

  async #ensureLive(because = MORE_REQUESTS): Promise<RunId> {
    if (this.#isEnsured && this.#id !== null) return this.#id
    const { store, policy } = this.#options
    const run = (await this.load()) ?? (await this.#create())
    if (!isLive(run.status)) await this.#reopen(run, because)
    await store.setPolicy(run.id, policy)
    this.#isEnsured = true
    return run.id
  }

  async #create(): Promise<Run> {
    const { store, policy } = this.#options
    const { source } = this
    const [id, input] = [newId(), { queue: this.#queue.id }]
    try {
      await store.enqueue({ id, source, kind: 'crawl', profile: 'requests', policy, input })
    } catch (error) {
      // Another process has made it.
      if (!(error instanceof AlreadyRunningError)) throw error
      const live = await store.liveRun(source)
      if (live && !this.#isOurs(live)) throw error
    }
    const run = await this.load()
    if (!run)
      throw new RefusedError(`The run of ${source} has ended before its first request was added.`)
    return run
  }

  async #reopen(run: Run, because: string): Promise<void> {
    if (this.#isCancelled)
      throw new RefusedError(
        `Run ${shortId(run.id)} was ended by an operator: it takes no more requests.`,
      )
    const { store, actor } = this.#options
    await store.replan({
      run: run.id,
      action: 'resume',
      statuses: [],
      reopen: 'for-more',
      dryRun: false,
      actor,
      because,
    })
  }

  #use(run: Run): Run {
    this.#id = run.id
    this.#isPlanned = run.plannedAt !== null
    return run
  }

  #isOurs(run: Run): boolean {
    return (run.input as { queue?: unknown } | null)?.queue === this.#queue.id
  }
}
