import { hash } from 'node:crypto'
import { decideAlerts, matchAlerts, type MatchedAlert } from './decide.ts'
import { decideNotifications } from './notify.ts'
import type { Millis } from '../../core/model/time.ts'
import { ALERT_STORE, type Alert, type AlertStore } from './store/store.ts'
import type { AlertRule, ChannelName } from './rule.ts'
import { messageOf, StoreUnavailableError } from '../../core/model/errors.ts'
import { newId, type WorkerId } from '../../core/model/id.ts'
import { redactor } from '../../core/model/redact.ts'
import type { ServiceHost } from '../../contracts/feature.ts'
import { alertSecrets, ALERTS_SECTION } from './section.ts'
import { makeChannels } from './channels.ts'
import { composeDeliveries, type AlertDelivery, type AlertMessage } from './message.ts'
import type { Store } from '../../core/store/store.ts'
import { REAL_CLOCK, type Clock } from '../../core/host/clock.ts'
import type { PolicyOf } from '../../core/model/policy-of.ts'
import { TRUSTED_OBSERVER } from '../../core/decide/liveness.ts'
import { collectFacts } from './facts.ts'
import { OrphanTracker } from '../../presenters/orphan-alerts.ts'
import { readRunName } from '../../presenters/find.ts'
import { ChannelQueue, type Channel } from './channel.ts'

export type AlertServiceOptions = {
  /** Called with each check: the database may be unavailable at the start. */
  readonly open: () => Promise<Store>
  readonly policyOf: PolicyOf
  readonly rules: readonly AlertRule[]
  readonly channels: readonly Channel[]
  /** The address of the dashboard; null: messages have no link. */
  readonly url: string | null
  /** The worker of this process; null: none, or not yet. */
  readonly worker: () => WorkerId | null
  readonly log: (text: string) => void
  readonly clock?: Clock
}

const CHECK_INTERVAL_MS = 5_000
const LEADERSHIP_MS = 3 * CHECK_INTERVAL_MS
/** The latest resolved alerts, whose end may still be due. */
const RESOLVED_MAX = 1_000
const KEEP_RESOLVED_MS = 30 * 24 * 3_600_000
const PRUNE_INTERVAL_MS = 3_600_000
/** Time for queued messages at the end of a program. */
const FINISH_MS = 5_000
/** `stop` does not wait longer for a check that waits for the database. */
const STOP_MS = 250

/**
 * Checks the rules every few seconds and sends what is due. Open alerts and deliveries are in the store, so that one of
 * many processes with the same rules sends, and a restart sends nothing twice. Neither work nor a stop waits for it.
 */
export class AlertService {
  readonly #options: AlertServiceOptions
  readonly #clock: Clock
  readonly #queues: ReadonlyMap<ChannelName, ChannelQueue>
  readonly #destinations: ReadonlyMap<ChannelName, string>
  /** Identifies the rules and destinations: of processes with the same ones, one leads. */
  readonly #owner: string
  readonly #orphanTracker: OrphanTracker
  readonly #stopping = new AbortController()
  /** Leads where this process has no worker. Such leadership ends when another process asks for it. */
  readonly #fallbackId = newId()
  /** Causes that this process raised or resolved, and so reports. */
  readonly #ownCauses = new Set<string>()
  /** Deliveries in progress, by channel and cause. */
  readonly #inFlight = new Map<string, Promise<void>>()
  #loop: Promise<void> | null = null
  #checking: Promise<void> = Promise.resolve()
  #lastError: string | null = null
  #prunedAt: Millis | null = null

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

  /** Makes a last check and waits some seconds at most for its messages. For a program that ends by itself. */
  async finish(): Promise<void> {
    if (this.#loop === null || this.#stopping.signal.aborted) return
    const sent = this.check(true).then(() => Promise.all(this.#inFlight.values()))
    await this.#waitAtMost(FINISH_MS, sent)
    await this.stop()
  }

  /** Drops what is queued. The next check, in any process, finds it undelivered. */
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

  /** Checks now. An error is logged once; that the database is unavailable is logged elsewhere. */
  check(isLast = false): Promise<void> {
    // One after the other, or both would send the same.
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
    // Taken before the reads: they do not contain what is delivered meanwhile.
    const busy = new Set(this.#inFlight.keys())
    const alerts = await store.extend(ALERT_STORE)
    await this.#pruneIfDue(alerts, await store.now())
    const open = await alerts.listAlerts({ open: true })
    const { now, ...facts } = await collectFacts(
      { store, policyOf, observer: TRUSTED_OBSERVER },
      this.#orphanTracker,
      open,
    )
    const found = matchAlerts(facts, rules, now)
    const { raise, refresh, resolve } = decideAlerts(found, rules, this.#owner, open, now)
    for (const one of [...raise, ...refresh]) {
      // Of all processes that find it at once, one raises it and reports it.
      if (await alerts.raiseAlert({ ...alertFields(one), owner: this.#owner }))
        this.#ownCauses.add(one.cause)
    }
    // What is unreadable now is not resolved.
    for (const alert of store.unreadable.length === 0 ? resolve : []) {
      if (await alerts.resolveAlert(alert)) this.#ownCauses.add(alert.cause)
    }
    if (this.#queues.size === 0) return
    // As stored: a process that reports it later must use the same time.
    const isChanged = raise.length + resolve.length > 0
    const kept = isChanged ? await alerts.listAlerts({ open: true }) : open
    const past = await alerts.listAlerts({ open: false, limit: RESOLVED_MAX })
    this.#forget([...kept, ...past])
    const notifier = { owner: this.#owner, rules, destinations: this.#destinations }
    const notifications = decideNotifications(
      found,
      kept,
      past,
      { ...notifier, ownCauses: this.#ownCauses, isLastCheck: isLast },
      await store.now(),
    ).filter(({ to, alert }) => !busy.has(deliveryKey(to, alert.cause)))
    for (const { message, ...delivery } of composeDeliveries(notifications, url)) {
      const { run } = message.alert
      const name = run === null ? {} : { runName: await readRunName(store, run) }
      this.#send({ ...delivery, message: { ...message, ...name } })
    }
  }

  /** Once an hour, and first at the start. */
  async #pruneIfDue(alerts: AlertStore, now: Millis): Promise<void> {
    if (this.#prunedAt !== null && now - this.#prunedAt < PRUNE_INTERVAL_MS) return
    await alerts.pruneAlerts(now - KEEP_RESOLVED_MS)
    this.#prunedAt = now
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
    const mark = async (): Promise<void> => {
      const alerts = await (await this.#options.open()).extend(ALERT_STORE)
      await alerts.markDelivered({ causes, destination, event })
    }
    // If this fails, the message may be sent twice, which is better than never.
    await mark().catch(() => {})
  }
}

function deliveryKey(to: ChannelName, cause: string): string {
  return `${to} ${cause}`
}

function alertFields({ cause, rule, source, run, because, command }: MatchedAlert) {
  return { cause, rule, source, run, because, command }
}

/** Makes the service of a process, by its config. */
export function makeAlertService(host: ServiceHost): AlertService {
  const { settings, log } = host
  const alerts = settings.section(ALERTS_SECTION)
  const redacted = redactor(alertSecrets(alerts).map(({ value }) => value))
  return new AlertService({
    ...host,
    policyOf: settings.policyOf,
    rules: alerts.rules,
    channels: makeChannels(alerts.channels),
    url: settings.url,
    log: (text) => log(redacted(text)),
  })
}
