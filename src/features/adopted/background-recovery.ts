import { hostname } from 'node:os'
import { TRUSTED_OBSERVER, type ObserverHealth } from '../../core/decide/liveness.ts'
import { messageOf } from '../../core/model/errors.ts'
import type { Emit } from '../../core/model/event.ts'
import { newId, type WorkerId } from '../../core/model/id.ts'
import type { Policy } from '../../core/model/policy.ts'
import type { Run } from '../../core/model/run.ts'
import type { Millis } from '../../core/model/time.ts'
import type { Store } from '../../core/store/store.ts'
import { REAL_CLOCK, type Clock } from '../../core/host/clock.ts'
import type { PolicyOf } from '../../core/model/policy-of.ts'
import { makeOperatorContext } from '../../core/recovery/context.ts'
import { Monitor, monitorInterval } from '../../core/recovery/monitor.ts'

export type AdoptedRecoveryOptions = {
  /** The store in which the rows of users' tables are runs. Asked for with each look: it may be away when this begins. */
  readonly open: () => Promise<Store>
  /** Of the tables, which say how often to look. With none there is nothing to do. */
  readonly policies: readonly Policy[]
  readonly policyOf: PolicyOf
  readonly emit: Emit
  /** The worker that lives in this process, as the store knows it; null: there is none (yet). */
  readonly worker?: () => WorkerId | null
  readonly clock?: Clock
}

/**
 * Looks after the rows of users' own tables for as long as a server lives. It works in the main thread, because the
 * functions of a config cannot go to the caretaker's. Of all servers, one looks at a time.
 */
export class AdoptedRecovery {
  readonly #options: AdoptedRecoveryOptions
  readonly #clock: Clock
  readonly #intervalMs: number
  readonly #stopping = new AbortController()
  /** Whose turn it is where no worker lives in this process. Such a turn lasts only until somebody else asks. */
  readonly #fallbackWorker = newId()
  #running: Promise<void> | null = null
  #monitor: { readonly store: Store; readonly monitor: Monitor } | null = null
  /** When the last one that came to its end did, by the store's clock: a look may take long, and is no gap. */
  #lastCheckAt: Millis | null = null
  /** Start of the time without a gap; before the first gap there is no limit to it. */
  #stableSince: Millis = -Infinity
  #lastError = ''

  constructor(options: AdoptedRecoveryOptions) {
    this.#options = options
    this.#clock = options.clock ?? REAL_CLOCK
    this.#intervalMs = Math.min(...options.policies.map(checkInterval))
  }

  /** Returns at once. The first look is now. */
  start(): void {
    if (this.#options.policies.length > 0) this.#running ??= this.#run()
  }

  /** The look under way comes to its end. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      await this.runOnce().catch((error: unknown) => this.#logOnce(messageOf(error)))
      await this.#clock.sleep(this.#intervalMs * (0.9 + 0.2 * this.#clock.random()), signal)
    }
  }

  /** One look, if it is this process's turn. */
  async runOnce(): Promise<void> {
    const store = await this.#options.open()
    const observer = this.#observerHealthAt(await store.now())
    const worker = this.#options.worker?.() ?? this.#fallbackWorker
    if (await store.acquireLeadership(worker, 1.5 * this.#intervalMs, 'adopted')) {
      await this.#monitorOf(store).runOnce(observer)
      this.#lastError = ''
    }
    this.#lastCheckAt = await store.now()
  }

  /** After a gap of its own it cannot tell whether others were silent, or it was deaf. */
  #observerHealthAt(now: Millis): ObserverHealth {
    const isGap = this.#lastCheckAt !== null && now - this.#lastCheckAt > 2.5 * this.#intervalMs
    if (isGap) this.#stableSince = now
    const stableForMs = now - this.#stableSince
    return { consecutiveHeartbeats: Infinity, stableForMs, connectedForMs: stableForMs }
  }

  #monitorOf(store: Store): Monitor {
    if (this.#monitor?.store === store) return this.#monitor.monitor
    const { policyOf, emit } = this.#options
    const actor = `monitor of process ${process.pid} on ${hostname()}`
    const parts = { store, actor, policyOf, observer: TRUSTED_OBSERVER, clock: REAL_CLOCK }
    const monitor = new Monitor(makeOperatorContext(parts), emit, isAdopted)
    this.#monitor = { store, monitor }
    return monitor
  }

  /** Trouble that lasts is said once. */
  #logOnce(message: string): void {
    if (message !== this.#lastError) this.#options.emit({ type: 'store_error', message })
    this.#lastError = message
  }
}

/** Nobody sweeps users' tables every moment, so the limits that a sweep looks after are this one's too. */
function checkInterval(policy: Policy): number {
  return monitorInterval(policy, [policy.leaseMs, policy.staleAfterMs])
}

function isAdopted({ adopted }: Run): boolean {
  return adopted !== undefined
}
