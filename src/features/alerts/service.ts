import { hash } from 'node:crypto'
import { decideAlerts, findAlerts, type Found } from './decide.ts'
import { decideTellings } from './notify.ts'
import type { Alert } from '../../core/model/alert.ts'
import type { AlertRule, ChannelName } from '../../core/model/alert-rule.ts'
import { messageOf, StoreUnavailable } from '../../core/model/errors.ts'
import { newId, type WorkerId } from '../../core/model/id.ts'
import type { Channel } from './channel.ts'
import type { AlertMessage } from './message.ts'
import type { Store } from '../../core/store/store.ts'
import { REAL_CLOCK, type Clock } from '../../core/host/clock.ts'
import type { PolicyOf } from '../../core/recovery/assess.ts'
import { writeLetters, type Letter } from './digest.ts'
import { gatherFacts } from './facts.ts'
import { Orphans } from './orphans.ts'
import { Outlet } from './channel-queue.ts'

export type AlertOptions = {
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

const LOOK_EVERY_MS = 5_000
const TURN_MS = 3 * LOOK_EVERY_MS
/** Resolved alerts of which people may still have to hear that they are over: the last ones. */
const PAST_MAX = 1_000
/** At the end of a program, for what is on its way. */
const FINISH_MS = 5_000
/** A look that waits for a database which does not answer is not waited for. */
const STOP_MS = 250

/**
 * Looks every few seconds at what the rules ask for, and tells people. What is open and who was told is in the store, so
 * that of many processes with the same rules one tells, and a restart tells nothing twice. Nothing waits for it: neither work nor a stop.
 */
export class AlertService {
  readonly #options: AlertOptions
  readonly #clock: Clock
  readonly #outlets: ReadonlyMap<ChannelName, Outlet>
  readonly #destinations: ReadonlyMap<ChannelName, string>
  /** These rules and these people: processes that have the same take turns, others look for themselves. */
  readonly #owner: string
  readonly #orphans: Orphans
  readonly #stopping = new AbortController()
  /** Whose turn it is where no worker lives in this process. Such a turn lasts only until somebody else asks. */
  readonly #nobody = newId()
  /** Causes that this process raised or resolved, so that nobody else tells them. */
  readonly #mine = new Set<string>()
  /** What is being told, by channel and cause. */
  readonly #onTheWay = new Map<string, Promise<void>>()
  #loop: Promise<void> | null = null
  #looking: Promise<void> = Promise.resolve()
  #complaint: string | null = null

  constructor(options: AlertOptions) {
    const { channels, rules, clock = REAL_CLOCK, log } = options
    this.#options = options
    this.#clock = clock
    const asked = channels.filter(({ name }) => rules.some(({ to }) => to.includes(name)))
    this.#outlets = new Map(asked.map((one) => [one.name, new Outlet(one, clock, log)]))
    this.#destinations = new Map(asked.map(({ name, destination }) => [name, destination]))
    const ours = JSON.stringify([rules, [...this.#destinations.values()].sort()])
    this.#owner = hash('sha256', ours).slice(0, 16)
    const windows = rules.map((rule) => (rule.when === 'orphans' ? rule.withinMs : 0))
    this.#orphans = new Orphans(Math.max(0, ...windows))
  }

  start(): void {
    this.#loop ??= this.#keepLooking()
  }

  /** A last look, and then some seconds at most for what there is to tell. For the end of a program that was not stopped. */
  async finish(): Promise<void> {
    if (this.#loop === null || this.#stopping.signal.aborted) return
    const told = this.look(true).then(() => Promise.all(this.#onTheWay.values()))
    await this.#atMost(FINISH_MS, told)
    await this.stop()
  }

  /** Whatever is on its way is given up at once. Who looks next finds that nobody was told of it. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    const outlets = [...this.#outlets.values()].map((outlet) => outlet.stop())
    await this.#atMost(STOP_MS, Promise.all([...outlets, this.#loop]))
  }

  async #atMost(ms: number, work: Promise<unknown>): Promise<void> {
    const done = new AbortController()
    void work.then(() => done.abort())
    await this.#clock.sleep(ms, done.signal)
  }

  async #keepLooking(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      await this.#clock.sleep(LOOK_EVERY_MS * (0.8 + 0.4 * this.#clock.random()), signal)
      if (!signal.aborted) await this.look()
    }
  }

  /** One look, now. An error in alerting is said once and stops nobody. When the database is away, others say so. */
  look(isLast = false): Promise<void> {
    // One after the other, or both would tell what the other is about to.
    this.#looking = this.#looking.then(() => this.#look(isLast))
    return this.#looking
  }

  async #look(isLast: boolean): Promise<void> {
    try {
      await this.#lookAndTell(isLast)
      this.#complaint = null
    } catch (error) {
      const complaint = messageOf(error)
      const isNews = complaint !== this.#complaint && !(error instanceof StoreUnavailable)
      this.#complaint = complaint
      if (isNews && !this.#stopping.signal.aborted) this.#options.log(`alerts: ${complaint}`)
    }
  }

  async #lookAndTell(isLast: boolean): Promise<void> {
    const { policyOf, rules, worker, url } = this.#options
    const store = await this.#options.open()
    const me = worker() ?? this.#nobody
    if (!(await store.takeTurn(me, TURN_MS, `alerts ${this.#owner}`))) return
    // Taken before anything is read: what is told and marked meanwhile is not in what was read.
    const busy = new Set(this.#onTheWay.keys())
    const open = await store.openAlerts()
    const { now, ...facts } = await gatherFacts(store, policyOf, this.#orphans, open)
    const found = findAlerts(facts, rules, now)
    const { raise, refresh, resolve } = decideAlerts(found, rules, this.#owner, open, now)
    for (const one of [...raise, ...refresh]) {
      // Of all that see it at once, one raises it, and tells.
      if (await store.raiseAlert({ ...written(one), owner: this.#owner })) this.#mine.add(one.cause)
    }
    // What cannot be seen now is not over.
    for (const alert of store.away.length === 0 ? resolve : []) {
      if (await store.resolveAlert(alert)) this.#mine.add(alert.cause)
    }
    if (this.#outlets.size === 0) return
    // As they are kept: whoever has to tell it later must know it by the same time.
    const isChanged = raise.length + resolve.length > 0
    const kept = isChanged ? await store.openAlerts() : open
    const past = await store.recentAlerts(PAST_MAX)
    this.#forget([...kept, ...past])
    const teller = { owner: this.#owner, rules, destinations: this.#destinations }
    const tellings = decideTellings(
      found,
      kept,
      past,
      { ...teller, mine: this.#mine, isLast },
      await store.now(),
    ).filter(({ to, alert }) => !busy.has(wayOf(to, alert.cause)))
    for (const letter of writeLetters(tellings, url)) this.#send(letter)
  }

  #forget(known: readonly Alert[]): void {
    const causes = new Set(known.map(({ cause }) => cause))
    for (const cause of this.#mine) if (!causes.has(cause)) this.#mine.delete(cause)
  }

  #send({ to, causes, message }: Letter): void {
    const ways = causes.map((cause) => wayOf(to, cause))
    const way = this.#deliver(to, causes, message).finally(() => {
      for (const one of ways) this.#onTheWay.delete(one)
    })
    for (const one of ways) this.#onTheWay.set(one, way)
  }

  async #deliver(to: ChannelName, causes: readonly string[], message: AlertMessage): Promise<void> {
    if (!(await this.#outlets.get(to)!.send(message))) return
    const event = message.event === 'resolved' ? 'ended' : 'sent'
    const destination = this.#destinations.get(to)!
    const mark = async (): Promise<void> =>
      (await this.#options.open()).markTold({ causes, destination, event })
    // If this is lost they may hear it twice, which is better than never.
    await mark().catch(() => {})
  }
}

function wayOf(to: ChannelName, cause: string): string {
  return `${to} ${cause}`
}

function written({ cause, rule, source, run, because, command }: Found) {
  return { cause, rule, source, run, because, command }
}
