import { hostname } from 'node:os'
import type { BackgroundService, ServiceHost } from '../../contracts/feature.ts'
import { TRUSTED_OBSERVER, type ObserverHealth } from '../../core/decide/liveness.ts'
import { messageOf } from '../../core/model/errors.ts'
import type { Emit } from '../../core/model/event.ts'
import { newId, type WorkerId } from '../../core/model/id.ts'
import type { Policy } from '../../core/model/policy.ts'
import type { Run } from '../../core/model/run.ts'
import type { Millis } from '../../core/model/time.ts'
import type { Verdict } from '../../core/model/verdict.ts'
import { recoveredLine, verdictView } from '../../presenters/verdict.ts'
import type { Store } from '../../core/store/store.ts'
import { REAL_CLOCK, type Clock } from '../../core/host/clock.ts'
import type { PolicyOf } from '../../core/model/policy-of.ts'
import { makeOperatorContext } from '../../core/recovery/context.ts'
import { Monitor, monitorInterval } from '../../core/recovery/monitor.ts'
import { ADOPTED_SECTION } from './config.ts'

export type AdoptedRecoveryOptions = {
  /** The store with adopted tables. Opened at each check, since it may be unreachable at the start. */
  readonly open: () => Promise<Store>
  /** The policies of the tables, which determine the interval. Without tables nothing runs. */
  readonly policies: readonly Policy[]
  readonly policyOf: PolicyOf
  readonly emit: Emit
  /** Receives a line after the first check, and after each that recovered rows. */
  readonly log?: (line: string) => void
  /** The worker of this process; null: none (yet). */
  readonly worker?: () => WorkerId | null
  readonly clock?: Clock
}

/** Recovers rows while a server runs. */
export async function recoveryServices(host: ServiceHost): Promise<BackgroundService[]> {
  if (!host.recovers) return []
  const policies = host.settings.section(ADOPTED_SECTION).map(({ policy }) => policy)
  return [new AdoptedRecovery({ ...host, policies, policyOf: host.settings.policyOf })]
}

const LEADER_ROLE = 'feature:adopted'

/**
 * Recovers the rows of adopted tables while a server runs. It runs in the main thread, because functions of a config
 * cannot be sent to the heartbeat thread. Only one of several servers checks at a time.
 */
export class AdoptedRecovery {
  readonly #options: AdoptedRecoveryOptions
  readonly #clock: Clock
  readonly #intervalMs: number
  readonly #stopping = new AbortController()
  /** Leads if this process has no worker. Another process can take such a leadership over at once. */
  readonly #fallbackWorker = newId()
  #running: Promise<void> | null = null
  #monitor: { readonly store: Store; readonly monitor: Monitor } | null = null
  /** End of the last completed check by the store's clock, so that a long check does not count as a gap. */
  #lastCheckAt: Millis | null = null
  /** When the last gap between checks ended. */
  #stableSince: Millis = -Infinity
  #lastError = ''
  #hasReported = false

  constructor(options: AdoptedRecoveryOptions) {
    this.#options = options
    this.#clock = options.clock ?? REAL_CLOCK
    this.#intervalMs = Math.min(...options.policies.map(checkInterval))
  }

  /** Starts the first check without waiting for it. */
  start(): void {
    if (this.#options.policies.length > 0) this.#running ??= this.#run()
  }

  /** Waits for the current check. */
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

  /** Checks once, if this process can acquire the leadership. */
  async runOnce(): Promise<void> {
    const store = await this.#options.open()
    const observer = this.#observerHealthAt(await store.now())
    const worker = this.#options.worker?.() ?? this.#fallbackWorker
    if (await store.acquireLeadership(worker, 1.5 * this.#intervalMs, LEADER_ROLE)) {
      this.#report(await this.#monitorOf(store).runOnce(observer))
      this.#lastError = ''
    }
    this.#lastCheckAt = await store.now()
  }

  /** Returns how far to trust the check: after a gap of its own, this process cannot tell a silent worker from its own outage. */
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
    const monitor = new Monitor(makeOperatorContext(parts), emit, isRow)
    this.#monitor = { store, monitor }
    return monitor
  }

  #report(verdicts: readonly Verdict[]): void {
    const views = verdicts.map((verdict) => verdictView(verdict, true))
    if (this.#hasReported && !views.some(({ outcome }) => outcome === 'applied')) return
    this.#hasReported = true
    this.#options.log?.(`adopted tables: ${recoveredLine(views)}`)
  }

  /** Reports a lasting error once. */
  #logOnce(message: string): void {
    if (message !== this.#lastError) this.#options.emit({ type: 'store_error', message })
    this.#lastError = message
  }
}

/** Returns the interval. No sweep covers adopted tables, so the check also has to meet the limits of a sweep. */
function checkInterval(policy: Policy): number {
  return monitorInterval(policy, [policy.leaseMs, policy.staleAfterMs])
}

function isRow({ traits }: Run): boolean {
  return traits.origin !== null
}
