import { fraction } from '../features/chaos/demo/random.ts'
import type { Claimed } from '../core/model/claim.ts'
import type { RunId, WorkerId } from '../core/model/id.ts'
import { newId } from '../core/model/id.ts'
import type { NewItem } from '../core/model/item.ts'
import { DEFAULT_POLICY, type Policy } from '../core/model/policy.ts'
import { sourceMistake } from '../core/model/source.ts'
import type { NewTarget } from '../core/model/target.ts'
import { thisProcess } from '../core/host/identity.ts'
import type { HeldPresence, Store } from '../core/store/store.ts'
import { allOk, claim, hire, ok, page, startCrawl } from './fixtures.ts'
import { HOSTILE_TEXTS } from './hostile-text.ts'
import type { TimeMachine } from './move-time.ts'

/** `here`: lives in this process. `killed`: its process is proven gone. `far`: on another host, known by its beats alone. */
type Whereabouts = 'here' | 'killed' | 'far'

/** A worker and what it has in hand. */
export type Hand = {
  readonly worker: WorkerId
  readonly source: string
  readonly host: string
  /** It lives in this process. */
  readonly isHere: boolean
  readonly slots: number
  /** How many of its targets fail, from 0 to 1; half as many are parked. */
  troubled: number
  claims: Claimed[]
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
export class Scene {
  readonly store: Store
  readonly hands: Hand[] = []
  readonly presences: HeldPresence[] = []
  readonly #machine: TimeMachine
  readonly #isHostile: boolean
  #said = 0
  #pids = 4_190_000

  constructor(store: Store, machine: TimeMachine, isHostile: boolean) {
    this.store = store
    this.#machine = machine
    this.#isHostile = isHostile
  }

  later(ms: number): Promise<void> {
    return this.#machine.later(ms)
  }

  /** A text that strangers could have written: in the hostile picture they have. */
  say(text: string): string {
    if (!this.#isHostile) return text
    return `${this.#hostileText()} ${text}`
  }

  /** The name of a source, as hostile as names can be. */
  name(text: string): string {
    if (!this.#isHostile) return text
    for (;;) {
      const name = `${text} ${this.#hostileText()}`
      if (sourceMistake(name) === null) return name
    }
  }

  /** Drawn, so that each place gets all of them in time; the same in each picture. */
  #hostileText(): string {
    return HOSTILE_TEXTS[Math.floor(fraction('hostile', this.#said++) * HOSTILE_TEXTS.length)]!
  }

  /** Queues a run with this many targets, in these groups. */
  queue(
    source: string,
    count: number,
    groups: readonly string[] = [],
    policy: Partial<Policy> = {},
  ): Promise<RunId> {
    const labels = groups.map((group) => this.say(group))
    const targets = Array.from({ length: count }, (_, n): NewTarget => {
      const group = labels[n % Math.max(1, labels.length)]
      const key = `${groups[n % Math.max(1, groups.length)] ?? source.split(' ')[0]}/${n + 1}`
      const url = this.say(`https://portal.example/${key}`)
      return { key: this.say(key), url, ...(group !== undefined && { group }) }
    })
    return startCrawl(this.store, targets, { source, policy })
  }

  async hire(source: string, where: Whereabouts, host?: string, slots = 3): Promise<Hand> {
    const { store } = this
    const id = newId()
    const me = thisProcess()
    const held = where === 'here' ? await store.holdPresence(id) : null
    if (held) this.presences.push(held)
    const name = this.say(host ?? me.host)
    await hire(store, {
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
    const hand: Hand = {
      worker: id,
      source,
      host: name,
      isHere: held !== null,
      slots,
      troubled: 0,
      claims: [],
    }
    this.hands.push(hand)
    return hand
  }

  async beat({ worker, claims }: Hand): Promise<void> {
    await this.store.beat({ worker, claimIds: claims.map(({ claimId }) => claimId), loopLagMs: 2 })
  }

  /** Takes its hands full and is heard once more. */
  async breathe(hand: Hand): Promise<void> {
    await this.claim(hand)
    await this.beat(hand)
  }

  async claim(hand: Hand): Promise<void> {
    const { worker, source, claims, slots } = hand
    if (claims.length >= slots) return
    // A worker whose heartbeats do not get through claims nothing, and time may have been moved since its last one.
    await this.beat(hand)
    const request = { source, empty: claims.length === 0 }
    claims.push(...(await claim(this.store, worker, slots - claims.length, request)))
  }

  /** One page of each target in hand; those that are done make room for others. */
  async work(hand: Hand): Promise<void> {
    const { store } = this
    await this.claim(hand)
    const fates = hand.claims.map((claimed) => ({
      claimed,
      fate: fateOf(claimed, hand.troubled),
    }))
    const meeting = (fate: Fate): Claimed[] =>
      fates.filter((one) => one.fate === fate).map(({ claimed }) => claimed)
    const failures = meeting('fails').map((claimed) => ({
      ...claimed,
      error: this.say(errorNumber(Math.floor(fraction(claimed.key, 'error') * 1_000))),
      retryInMs: null,
    }))
    if (failures.length > 0) await store.fail(failures).then(allOk)
    const parked = meeting('is parked').map((claimed) => ({
      ...claimed,
      reason: this.say('its worker was lost 3 times while it worked on this alone'),
    }))
    if (parked.length > 0) await store.park(parked).then(allOk)
    const going = meeting('goes on')
    const pages = going.map((claimed) => this.#page(claimed))
    const saved = await store.checkpoint(pages)
    hand.claims = going.flatMap((claimed, n) => {
      const { page, next, done } = pages[n]!
      const seq = ok(saved[n]!)
      return done ? [] : [{ ...claimed, seq, page, next }]
    })
  }

  /** Works until nothing is left for it, and ends. */
  async workOff(hand: Hand): Promise<void> {
    do {
      await this.work(hand)
      await this.claim(hand)
    } while (hand.claims.length > 0)
    await this.retire(hand)
  }

  async retire(hand: Hand): Promise<void> {
    await this.store.release(hand.claims)
    await this.store.retire(hand.worker)
    await this.store.settle()
    this.hands.splice(this.hands.indexOf(hand), 1)
  }

  #page(claimed: Claimed): ReturnType<typeof page> {
    const count = pagesOf(claimed)
    const number = claimed.page + 1
    const done = number >= count
    const items = Array.from({ length: ITEMS_PER_PAGE }, (_, n) => this.#item(claimed, number, n))
    return page(claimed, {
      items,
      done,
      skipped: number % 3,
      pageTarget: count,
      next: done ? null : this.say(`https://portal.example/list?page=${number + 1}`),
      lastItemId: this.say(`notice-${claimed.target.slice(-6)}-${number}`),
      cursor: { session: this.say('eu-west'), offset: number * 20, total: '9007199254740993' },
    })
  }

  #item(claimed: Claimed, number: number, n: number): NewItem {
    const id = `${claimed.target.slice(-10)}-${number}-${n}`
    const price = Math.round(fraction(id, 'price') * 900_000) / 100
    return {
      url: `https://portal.example/detail/${id}`,
      data: { title: this.say(`Notice ${id}`), price, currency: 'EUR', city: this.say('Köln') },
    }
  }
}

type Fate = 'goes on' | 'fails' | 'is parked'

/** The same for the same target, however often it is asked. */
function fateOf({ key, page }: Claimed, troubled: number): Fate {
  if (page !== 1) return 'goes on'
  const lot = fraction(key, 'fate')
  return lot < troubled ? 'fails' : lot < 1.5 * troubled ? 'is parked' : 'goes on'
}

function pagesOf({ key }: Claimed): number {
  return 2 + Math.floor(fraction(key, 'pages') * 4)
}
