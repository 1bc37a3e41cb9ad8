import { hash } from 'node:crypto'
import { decideAlerts, type Found } from '../../decide/alert.ts'
import type { Alert } from '../../model/alert.ts'
import type { AlertRule, ChannelName } from '../../model/alert-rule.ts'
import { messageOf, StoreUnavailable } from '../../model/errors.ts'
import { newId, type WorkerId } from '../../model/id.ts'
import type { Channel } from '../../observe/alerts/channel.ts'
import type { AlertMessage } from '../../observe/alerts/message.ts'
import type { Store } from '../../store/store.ts'
import { REAL_CLOCK, type Clock } from '../clock.ts'
import type { PolicyOf } from '../judgement.ts'
import { gatherFacts } from './facts.ts'
import { Orphans } from './orphans.ts'
import { Outlet } from './outlet.ts'

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
/** Who can tell nobody lets whoever can come first: a shorter turn is preferred to a longer one. */
const IDLE_TURN_MS = 4 * TURN_MS
/** Resolved alerts that are remembered, so that one which comes back at once is not told twice. */
const PAST_MAX = 200
/** At the end of a program, for what is on its way. */
const FINISH_MS = 5_000
/** A look that waits for a database which does not answer is not waited for. */
const STOP_MS = 250

/**
 * Looks every few seconds at what the rules ask for, and tells people. What is open and who was told is in the store, so
 * that of many processes one tells, and a restart tells nothing twice. Nothing waits for it: neither work nor a stop.
 */
export class AlertService {
  readonly #options: AlertOptions
  readonly #clock: Clock
  readonly #outlets: ReadonlyMap<ChannelName, Outlet>
  readonly #orphans: Orphans
  readonly #stopping = new AbortController()
  /** Whose turn it is where no worker lives in this process. Such a turn lasts only until somebody else asks. */
  readonly #nobody = newId()
  /** Causes that are being told. */
  readonly #onTheWay = new Map<string, Promise<void>>()
  #loop: Promise<void> | null = null
  #complaint: string | null = null

  constructor(options: AlertOptions) {
    const { channels, rules, clock = REAL_CLOCK, log } = options
    this.#options = options
    this.#clock = clock
    const asked = channels.filter(({ name }) => rules.some(({ to }) => to.includes(name)))
    this.#outlets = new Map(asked.map((one) => [one.name, new Outlet(one, clock, log)]))
    const windows = rules.map((rule) => (rule.when === 'orphans' ? rule.withinMs : 0))
    this.#orphans = new Orphans(Math.max(0, ...windows))
  }

  start(): void {
    this.#loop ??= this.#keepLooking()
  }

  /** A last look, and then some seconds at most for what there is to tell. For the end of a program that was not stopped. */
  async finish(): Promise<void> {
    if (this.#loop === null || this.#stopping.signal.aborted) return
    const told = this.look().then(() => Promise.all(this.#onTheWay.values()))
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
  async look(): Promise<void> {
    try {
      await this.#lookAndTell()
      this.#complaint = null
    } catch (error) {
      const complaint = messageOf(error)
      const isNews = complaint !== this.#complaint && !(error instanceof StoreUnavailable)
      this.#complaint = complaint
      if (isNews && !this.#stopping.signal.aborted) this.#options.log(`alerts: ${complaint}`)
    }
  }

  async #lookAndTell(): Promise<void> {
    const { policyOf, rules, worker } = this.#options
    const store = await this.#options.open()
    const turnMs = this.#outlets.size > 0 ? TURN_MS : IDLE_TURN_MS
    if (!(await store.takeTurn(worker() ?? this.#nobody, turnMs, 'alerts'))) return
    const { now, ...facts } = await gatherFacts(store, policyOf, this.#orphans)
    const open = await store.openAlerts()
    const past = await store.recentAlerts(PAST_MAX)
    const decision = decideAlerts(facts, rules, [...open, ...past], now)
    const raised: Found[] = []
    for (const one of decision.raise) {
      // Of all that see it at once, one raises it, and tells.
      if (!(await store.raiseAlert(written(one)))) continue
      if (one.toldAt !== null) await store.markSent(one.cause, one.toldAt)
      else raised.push(one)
    }
    for (const one of decision.refresh) await store.raiseAlert(written(one))
    // As they are kept: whoever has to tell it later must know it by the same time.
    const kept = raised.length > 0 ? await store.openAlerts() : open
    for (const one of [...raised, ...decision.tell]) {
      const alert = kept.find(({ cause }) => cause === one.cause)
      if (!alert) continue
      const event = alert.lastSentAt === null ? 'raised' : 'repeated'
      this.#tell(event, { ...one, since: alert.since }, one.to, alert.lastSentAt)
    }
    for (const { alert, to } of decision.resolve) {
      if (await store.resolveAlert(alert.cause)) this.#tell('resolved', alert, to, alert.lastSentAt)
    }
  }

  #tell(
    event: 'raised' | 'repeated' | 'resolved',
    alert: AlertMessage['alert'],
    to: readonly ChannelName[],
    lastSentAt: number | null,
  ): void {
    const { cause, since } = alert
    const outlets = to.flatMap((name) => this.#outlets.get(name) ?? [])
    if (outlets.length === 0 || (event !== 'resolved' && this.#onTheWay.has(cause))) return
    const key = hash('sha256', JSON.stringify([cause, since, event, lastSentAt])).slice(0, 32)
    const message = { event, key, alert, link: linkTo(this.#options.url, alert) }
    const way = this.#deliver(message, outlets).finally(() => {
      if (this.#onTheWay.get(cause) === way) this.#onTheWay.delete(cause)
    })
    this.#onTheWay.set(cause, way)
  }

  /** People know as soon as one channel has taken it. The others go on trying. */
  async #deliver(message: AlertMessage, outlets: readonly Outlet[]): Promise<void> {
    let isMarked = message.event === 'resolved'
    const each = outlets.map(async (outlet) => {
      const taken = await outlet.send(message)
      if (!taken || isMarked) return
      isMarked = true
      // If this is lost they may hear it twice, which is better than never.
      await this.#mark(message.alert.cause).catch(() => {})
    })
    await Promise.all(each)
  }

  async #mark(cause: string): Promise<void> {
    const store = await this.#options.open()
    await store.markSent(cause, await store.now())
  }
}

function written({ cause, rule, source, run, because, command }: Found) {
  return { cause, rule, source, run, because, command }
}

/** The page of the dashboard that shows more. */
function linkTo(url: string | null, { run, rule }: Pick<Alert, 'run' | 'rule'>): string | null {
  if (url === null) return null
  const page = run === null ? (rule === 'orphans' ? 'history' : '') : `runs/${run}`
  return new URL(page, url.endsWith('/') ? url : `${url}/`).href
}
