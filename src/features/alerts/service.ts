import { hash } from 'node:crypto'
import { decideAlerts, matchAlerts, type MatchedAlert } from './decide.ts'
import { decideNotifications } from './notify.ts'
import type { Alert } from '../../core/model/alert.ts'
import type { AlertRule, ChannelName } from '../../core/model/alert-rule.ts'
import { messageOf, StoreUnavailableError } from '../../core/model/errors.ts'
import { newId, type WorkerId } from '../../core/model/id.ts'
import type { Channel } from './channel.ts'
import type { AlertMessage } from './message.ts'
import type { Store } from '../../core/store/store.ts'
import { REAL_CLOCK, type Clock } from '../../core/host/clock.ts'
import type { PolicyOf } from '../../core/model/policy-of.ts'
import { TRUSTED_OBSERVER } from '../../core/decide/liveness.ts'
import { composeDeliveries, type AlertDelivery } from './deliveries.ts'
import { collectFacts } from './facts.ts'
import { OrphanTracker } from './orphan-tracker.ts'
import { ChannelQueue } from './channel-queue.ts'

export type AlertServiceOptions = {
  /** Asked for with each look: the database may be away when this begins. */
  readonly open: () => Promise<Store>
  readonly policyOf: PolicyOf
  readonly rules: readonly AlertRule[]
  readonly channels: readonly Channel[]
  /** Where people reach the dashboard; null: messages have no link. */
  readonly url: string | null
  /** The worker that lives in this process, as the store knows it; null: there is none (yet). */
  readonly worker: () => WorkerId | null
  readonly log: (text: string) => void
  readonly clock?: Clock
}

const CHECK_INTERVAL_MS = 5_000
const LEADERSHIP_MS = 3 * CHECK_INTERVAL_MS
/** Resolved alerts of which people may still have to hear that they are over: the last ones. */
const RESOLVED_MAX = 1_000
/** At the end of a program, for what is on its way. */
const FINISH_MS = 5_000
/** A look that waits for a database which does not answer is not waited for. */
const STOP_MS = 250

/**
 * Looks every few seconds at what the rules ask for, and tells people. What is open and who was told is in the store, so
 * that of many processes with the same rules one tells, and a restart tells nothing twice. Nothing waits for it: neither work nor a stop.
 */
export class AlertService {
  readonly #options: AlertServiceOptions
  readonly #clock: Clock
  readonly #queues: ReadonlyMap<ChannelName, ChannelQueue>
  readonly #destinations: ReadonlyMap<ChannelName, string>
  /** These rules and these people: processes that have the same take turns, others look for themselves. */
  readonly #owner: string
  readonly #orphanTracker: OrphanTracker
  readonly #stopping = new AbortController()
  /** Whose turn it is where no worker lives in this process. Such a turn lasts only until somebody else asks. */
  readonly #fallbackId = newId()
  /** Causes that this process raised or resolved, so that nobody else tells them. */
  readonly #ownCauses = new Set<string>()
  /** What is being told, by channel and cause. */
  readonly #inFlight = new Map<string, Promise<void>>()
  #loop: Promise<void> | null = null
  #checking: Promise<void> = Promise.resolve()
  #lastError: string | null = null

  constructor(options: AlertServiceOptions) {
    const { channels, rules, clock = REAL_CLOCK, log } = options
    this.#options = options
    this.#clock = clock
    const used = channels.filter(({ name }) => rules.some(({ to }) => to.includes(name)))
    this.#queues = new Map(used.map((one) => [one.name, new ChannelQueue(one, clock, log)]))
    this.#destinations = new Map(used.map(({ name, destination }) => [name, destination]))
    const identity = JSON.stringify([rules, [...this.#destinations.values()].sort()])
    this.#owner = hash('sha256', identity).slice(0, 16)
    const windows = rules.map((rule) => (rule.when === 'orphans' ? rule.withinMs : 0))
    this.#orphanTracker = new OrphanTracker(Math.max(0, ...windows))
  }

  start(): void {
    this.#loop ??= this.#runLoop()
  }

  /** A last look, and then some seconds at most for what there is to tell. For the end of a program that was not stopped. */
  async finish(): Promise<void> {
    if (this.#loop === null || this.#stopping.signal.aborted) return
    const sent = this.check(true).then(() => Promise.all(this.#inFlight.values()))
    await this.#waitAtMost(FINISH_MS, sent)
    await this.stop()
  }

  /** Whatever is on its way is given up at once. Who looks next finds that nobody was told of it. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    const stopping = [...this.#queues.values()].map((queue) => queue.stop())
    await this.#waitAtMost(STOP_MS, Promise.all([...stopping, this.#loop]))
  }

  async #waitAtMost(ms: number, work: Promise<unknown>): Promise<void> {
    const done = new AbortController()
    void work.then(() => done.abort())
    await this.#clock.sleep(ms, done.signal)
  }

  async #runLoop(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      await this.#clock.sleep(CHECK_INTERVAL_MS * (0.8 + 0.4 * this.#clock.random()), signal)
      if (!signal.aborted) await this.check()
    }
  }

  /** One look, now. An error in alerting is said once and stops nobody. When the database is away, others say so. */
  check(isLast = false): Promise<void> {
    // One after the other, or both would tell what the other is about to.
    this.#checking = this.#checking.then(() => this.#checkSafely(isLast))
    return this.#checking
  }

  async #checkSafely(isLast: boolean): Promise<void> {
    try {
      await this.#checkAndNotify(isLast)
      this.#lastError = null
    } catch (error) {
      const message = messageOf(error)
      const isNews = message !== this.#lastError && !(error instanceof StoreUnavailableError)
      this.#lastError = message
      if (isNews && !this.#stopping.signal.aborted) this.#options.log(`alerts: ${message}`)
    }
  }

  async #checkAndNotify(isLast: boolean): Promise<void> {
    const { policyOf, rules, worker, url } = this.#options
    const store = await this.#options.open()
    const leader = worker() ?? this.#fallbackId
    if (!(await store.acquireLeadership(leader, LEADERSHIP_MS, `alerts ${this.#owner}`))) return
    // Taken before anything is read: what is told and marked meanwhile is not in what was read.
    const busy = new Set(this.#inFlight.keys())
    const open = await store.openAlerts()
    const { now, ...facts } = await collectFacts(
      { store, policyOf, observer: TRUSTED_OBSERVER },
      this.#orphanTracker,
      open,
    )
    const found = matchAlerts(facts, rules, now)
    const { raise, refresh, resolve } = decideAlerts(found, rules, this.#owner, open, now)
    for (const one of [...raise, ...refresh]) {
      // Of all that see it at once, one raises it, and tells.
      if (await store.raiseAlert({ ...alertFields(one), owner: this.#owner }))
        this.#ownCauses.add(one.cause)
    }
    // What cannot be seen now is not over.
    for (const alert of store.unreadable.length === 0 ? resolve : []) {
      if (await store.resolveAlert(alert)) this.#ownCauses.add(alert.cause)
    }
    if (this.#queues.size === 0) return
    // As they are kept: whoever has to tell it later must know it by the same time.
    const isChanged = raise.length + resolve.length > 0
    const kept = isChanged ? await store.openAlerts() : open
    const past = await store.recentAlerts(RESOLVED_MAX)
    this.#forget([...kept, ...past])
    const notifier = { owner: this.#owner, rules, destinations: this.#destinations }
    const notifications = decideNotifications(
      found,
      kept,
      past,
      { ...notifier, ownCauses: this.#ownCauses, isLastCheck: isLast },
      await store.now(),
    ).filter(({ to, alert }) => !busy.has(deliveryKey(to, alert.cause)))
    for (const delivery of composeDeliveries(notifications, url)) this.#send(delivery)
  }

  #forget(known: readonly Alert[]): void {
    const causes = new Set(known.map(({ cause }) => cause))
    for (const cause of this.#ownCauses) if (!causes.has(cause)) this.#ownCauses.delete(cause)
  }

  #send({ to, causes, message }: AlertDelivery): void {
    const keys = causes.map((cause) => deliveryKey(to, cause))
    const delivery = this.#deliver(to, causes, message).finally(() => {
      for (const one of keys) this.#inFlight.delete(one)
    })
    for (const one of keys) this.#inFlight.set(one, delivery)
  }

  async #deliver(to: ChannelName, causes: readonly string[], message: AlertMessage): Promise<void> {
    if (!(await this.#queues.get(to)!.send(message))) return
    const event = message.event === 'resolved' ? 'ended' : 'sent'
    const destination = this.#destinations.get(to)!
    const mark = async (): Promise<void> =>
      (await this.#options.open()).markDelivered({ causes, destination, event })
    // If this is lost they may hear it twice, which is better than never.
    await mark().catch(() => {})
  }
}

function deliveryKey(to: ChannelName, cause: string): string {
  return `${to} ${cause}`
}

function alertFields({ cause, rule, source, run, because, command }: MatchedAlert) {
  return { cause, rule, source, run, because, command }
}
