import { seededFraction } from '../features/chaos/random.ts'
import type { ClaimedTarget } from '../core/model/claim.ts'
import { newId, type RunId, type WorkerId } from '../core/model/id.ts'
import type { NewItem } from '../core/model/item.ts'
import { DEFAULT_POLICY, type Policy } from '../core/model/policy.ts'
import { sourceMistake } from '../lib/validate/source.ts'
import type { TargetInput } from '../core/model/target.ts'
import { thisProcess } from '../core/host/identity.ts'
import type { PresenceLock, Store } from '../core/store/store.ts'
import {
  assertAllOk,
  claim,
  registerWorker,
  unwrap,
  nextCheckpoint,
  enqueueCrawl,
} from './fixtures.ts'
import { HOSTILE_TEXTS } from './hostile-text.ts'
import type { DatabaseClock } from './database-clock.ts'

/** `here`: lives in this process. `killed`: its process is proven gone. `far`: on another host, known by its beats alone. */
type WorkerLocation = 'here' | 'killed' | 'far'

/** A worker and what it has in hand. */
export type SimulatedWorker = {
  readonly worker: WorkerId
  readonly source: string
  readonly host: string
  /** It lives in this process. */
  readonly isLocal: boolean
  readonly slots: number
  /** How many of its targets fail, from 0 to 1; half as many are parked. */
  failureRate: number
  claims: ClaimedTarget[]
}

const ITEMS_PER_PAGE = 3

/** Errors as scrapers have them. Some differ only by numbers and addresses: they are of one kind. */
const ERRORS: readonly ((n: number) => string)[] = [
  (n) => `TimeoutError: navigation to https://portal.example/list?page=${n} exceeded 30000 ms`,
  (n) => `HTTP 403 Forbidden for https://portal.example/detail/${n}: blocked by the firewall`,
  () => "TypeError: Cannot read properties of null (reading 'textContent')",
  (n) => `HTTP 429 Too Many Requests, Retry-After: ${n % 90}`,
  (n) => `getaddrinfo ENOTFOUND cdn-${n % 4}.portal.example`,
  () => 'The page has no results list: "div.results" was not found. Has the layout changed?',
  (n) => `SyntaxError: Unexpected token '<', "<!DOCTYPE "... is not valid JSON (row ${n})`,
  () => 'net::ERR_CERT_DATE_INVALID',
]
export function errorNumber(n: number): string {
  return ERRORS[n % ERRORS.length]!(n)
}

/** Where the showcase is played: a store, its clock, and who is on it. */
export class Simulation {
  readonly store: Store
  readonly workers: SimulatedWorker[] = []
  readonly presences: PresenceLock[] = []
  readonly #clock: DatabaseClock
  readonly #isHostile: boolean
  #hostileTexts = 0
  #pids = 4_190_000

  constructor(store: Store, clock: DatabaseClock, isHostile: boolean) {
    this.store = store
    this.#clock = clock
    this.#isHostile = isHostile
  }

  advance(ms: number): Promise<void> {
    return this.#clock.advance(ms)
  }

  /** A text that strangers could have written: in the hostile picture they have. */
  text(text: string): string {
    if (!this.#isHostile) return text
    return `${this.#hostileText()} ${text}`
  }

  /** The name of a source, as hostile as names can be. */
  sourceName(text: string): string {
    if (!this.#isHostile) return text
    for (;;) {
      const name = `${text} ${this.#hostileText()}`
      if (sourceMistake(name) === null) return name
    }
  }

  /** Drawn, so that each place gets all of them in time; the same in each picture. */
  #hostileText(): string {
    return HOSTILE_TEXTS[
      Math.floor(seededFraction('hostile', this.#hostileTexts++) * HOSTILE_TEXTS.length)
    ]!
  }

  /** Queues a run with this many targets, in these groups. */
  enqueue(
    source: string,
    count: number,
    groups: readonly string[] = [],
    policy: Partial<Policy> = {},
  ): Promise<RunId> {
    const labels = groups.map((group) => this.text(group))
    const targets = Array.from({ length: count }, (_, n): TargetInput => {
      const group = labels[n % Math.max(1, labels.length)]
      const key = `${groups[n % Math.max(1, groups.length)] ?? source.split(' ')[0]}/${n + 1}`
      const url = this.text(`https://portal.example/${key}`)
      return { key: this.text(key), url, ...(group !== undefined && { group }) }
    })
    return enqueueCrawl(this.store, targets, { source, policy })
  }

  async addWorker(
    source: string,
    where: WorkerLocation,
    host?: string,
    slots = 3,
  ): Promise<SimulatedWorker> {
    const { store } = this
    const id = newId()
    const me = thisProcess()
    const held = where === 'here' ? await store.acquirePresence(id) : null
    if (held) this.presences.push(held)
    const name = this.text(host ?? me.host)
    await registerWorker(store, {
      id,
      source,
      presence: held?.presence ?? { kind: 'none' },
      process: {
        ...me,
        ...(where !== 'here' && { pid: ++this.#pids, startTicks: 1, host: name }),
        ...(where === 'far' && { bootId: 'another' }),
      },
      version: '0.4.0',
      // As workers have it: recovery waits for two heartbeats before it believes a silence.
      heartbeatMs: DEFAULT_POLICY.heartbeatMs,
    })
    const simulated: SimulatedWorker = {
      worker: id,
      source,
      host: name,
      isLocal: held !== null,
      slots,
      failureRate: 0,
      claims: [],
    }
    this.workers.push(simulated)
    return simulated
  }

  async heartbeat({ worker, claims }: SimulatedWorker): Promise<void> {
    await this.store.heartbeat({
      worker,
      claimIds: claims.map(({ claimId }) => claimId),
      loopLagMs: 2,
    })
  }

  /** Takes its hands full and is heard once more. */
  async claimAndHeartbeat(simulated: SimulatedWorker): Promise<void> {
    await this.claim(simulated)
    await this.heartbeat(simulated)
  }

  async claim(simulated: SimulatedWorker): Promise<void> {
    const { worker, source, claims, slots } = simulated
    if (claims.length >= slots) return
    // A worker whose heartbeats do not get through claims nothing, and time may have been moved since its last one.
    await this.heartbeat(simulated)
    const request = { source, isIdle: claims.length === 0 }
    claims.push(...(await claim(this.store, worker, slots - claims.length, request)))
  }

  /** One page of each target in hand; those that are done make room for others. */
  async workOnce(simulated: SimulatedWorker): Promise<void> {
    const { store } = this
    await this.claim(simulated)
    const fates = simulated.claims.map((claimed) => ({
      claimed,
      fate: outcomeOf(claimed, simulated.failureRate),
    }))
    const meeting = (fate: PageOutcome): ClaimedTarget[] =>
      fates.filter((one) => one.fate === fate).map(({ claimed }) => claimed)
    const failures = meeting('fails').map((claimed) => ({
      ...claimed,
      error: this.text(errorNumber(Math.floor(seededFraction(claimed.key, 'error') * 1_000))),
      becomes: 'failed' as const,
    }))
    if (failures.length > 0) await store.fail(failures).then(assertAllOk)
    const parked = meeting('is parked').map((claimed) => ({
      ...claimed,
      error: this.text('its worker was lost 3 times while it worked on this alone'),
      becomes: 'parked' as const,
    }))
    if (parked.length > 0) await store.fail(parked).then(assertAllOk)
    const going = meeting('goes on')
    const pages = going.map((claimed) => this.#page(claimed))
    const saved = await store.checkpoint(pages)
    simulated.claims = going.flatMap((claimed, n) => {
      const { page, next, done } = pages[n]!
      const { seq } = unwrap(saved[n]!)
      return done ? [] : [{ ...claimed, seq, page, next }]
    })
  }

  /** Works until nothing is left for it, and ends. */
  async workUntilDone(simulated: SimulatedWorker): Promise<void> {
    do {
      await this.workOnce(simulated)
      await this.claim(simulated)
    } while (simulated.claims.length > 0)
    await this.retire(simulated)
  }

  async retire(simulated: SimulatedWorker): Promise<void> {
    await this.store.release(simulated.claims)
    await this.store.retireWorker(simulated.worker)
    await this.store.settle()
    this.workers.splice(this.workers.indexOf(simulated), 1)
  }

  #page(claimed: ClaimedTarget): ReturnType<typeof nextCheckpoint> {
    const count = pagesOf(claimed)
    const number = claimed.page + 1
    const done = number >= count
    const items = Array.from({ length: ITEMS_PER_PAGE }, (_, n) => this.#item(claimed, number, n))
    return nextCheckpoint(claimed, {
      items,
      done,
      skipped: number % 3,
      pageTarget: count,
      next: done ? null : this.text(`https://portal.example/list?page=${number + 1}`),
      lastItemId: this.text(`notice-${claimed.target.slice(-6)}-${number}`),
      cursor: { session: this.text('eu-west'), offset: number * 20, total: '9007199254740993' },
    })
  }

  #item(claimed: ClaimedTarget, number: number, n: number): NewItem {
    const id = `${claimed.target.slice(-10)}-${number}-${n}`
    const price = Math.round(seededFraction(id, 'price') * 900_000) / 100
    return {
      url: `https://portal.example/detail/${id}`,
      data: { title: this.text(`Notice ${id}`), price, currency: 'EUR', city: this.text('Köln') },
    }
  }
}

type PageOutcome = 'goes on' | 'fails' | 'is parked'

/** The same for the same target, however often it is asked. */
function outcomeOf({ key, page }: ClaimedTarget, failureRate: number): PageOutcome {
  if (page !== 1) return 'goes on'
  const lot = seededFraction(key, 'fate')
  return lot < failureRate ? 'fails' : lot < 1.5 * failureRate ? 'is parked' : 'goes on'
}

function pagesOf({ key }: ClaimedTarget): number {
  return 2 + Math.floor(seededFraction(key, 'pages') * 4)
}
