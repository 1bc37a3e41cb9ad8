import { hostname } from 'node:os'
import type { Judge } from '../../core/decide/liveness.ts'
import { messageOf } from '../../core/model/errors.ts'
import type { Emit } from '../../core/model/event.ts'
import { newId, type WorkerId } from '../../core/model/id.ts'
import type { Policy } from '../../core/model/policy.ts'
import type { Run } from '../../core/model/run.ts'
import type { Millis } from '../../core/model/time.ts'
import type { Store } from '../../core/store/store.ts'
import { REAL_CLOCK, type Clock } from '../../core/host/clock.ts'
import type { PolicyOf } from '../../core/recovery/assess.ts'
import { Monitor, monitorEvery } from '../../core/recovery/monitor.ts'

export type AdoptedAttendantOptions = {
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
export class AdoptedAttendant {
  readonly #options: AdoptedAttendantOptions
  readonly #clock: Clock
  readonly #everyMs: number
  readonly #stopping = new AbortController()
  /** Whose turn it is where no worker lives in this process. Such a turn lasts only until somebody else asks. */
  readonly #nobody = newId()
  #running: Promise<void> | null = null
  #monitor: { readonly store: Store; readonly monitor: Monitor } | null = null
  /** When the last one that came to its end did, by the store's clock: a look may take long, and is no gap. */
  #lastLookAt: Millis | null = null
  /** Start of the time without a gap; before the first gap there is no limit to it. */
  #steadySince: Millis = -Infinity
  #trouble = ''

  constructor(options: AdoptedAttendantOptions) {
    this.#options = options
    this.#clock = options.clock ?? REAL_CLOCK
    this.#everyMs = Math.min(...options.policies.map(lookEvery))
  }

  /** Returns at once. The first look is now. */
  start(): void {
    if (this.#options.policies.length > 0) this.#running ??= this.#attend()
  }

  /** The look under way comes to its end. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#running
  }

  async #attend(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      await this.look().catch((error: unknown) => this.#complain(messageOf(error)))
      await this.#clock.sleep(this.#everyMs * (0.9 + 0.2 * this.#clock.random()), signal)
    }
  }

  /** One look, if it is this process's turn. */
  async look(): Promise<void> {
    const store = await this.#options.open()
    const judge = this.#judgeAt(await store.now())
    const me = this.#options.worker?.() ?? this.#nobody
    if (await store.takeTurn(me, 1.5 * this.#everyMs, 'adopted')) {
      await this.#monitorOf(store).look(judge)
      this.#trouble = ''
    }
    this.#lastLookAt = await store.now()
  }

  /** After a gap of its own it cannot tell whether others were silent, or it was deaf. */
  #judgeAt(now: Millis): Judge {
    const isGap = this.#lastLookAt !== null && now - this.#lastLookAt > 2.5 * this.#everyMs
    if (isGap) this.#steadySince = now
    const steadyForMs = now - this.#steadySince
    return { beatsInARow: Infinity, steadyForMs, connectedForMs: steadyForMs }
  }

  #monitorOf(store: Store): Monitor {
    if (this.#monitor?.store === store) return this.#monitor.monitor
    const { policyOf, emit } = this.#options
    const actor = `monitor of process ${process.pid} on ${hostname()}`
    const monitor = new Monitor({ store, actor, policyOf }, emit, isAdopted)
    this.#monitor = { store, monitor }
    return monitor
  }

  /** Trouble that lasts is said once. */
  #complain(message: string): void {
    if (message !== this.#trouble) this.#options.emit({ type: 'store_trouble', message })
    this.#trouble = message
  }
}

/** Nobody sweeps users' tables every moment, so the limits that a sweep looks after are this one's too. */
function lookEvery(policy: Policy): number {
  return monitorEvery(policy, [policy.leaseMs, policy.staleAfterMs])
}

function isAdopted({ adopted }: Run): boolean {
  return adopted !== undefined
}
