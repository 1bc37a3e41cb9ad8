import { messageOf, StoreUnavailable, UnstuckError } from '../../../core/model/errors.ts'
import { iso } from '../../../core/model/time.ts'
import { redact } from '../../../core/model/redact.ts'
import { safeJson } from '../../../core/events/safe-text.ts'
import { REAL_CLOCK } from '../../../core/host/clock.ts'
import { badRequest, tooManyRequests } from '../http-error.ts'
import type { Caller, Ground } from '../route.ts'
import { BEAT, eventFrame, EventStream } from '../../../lib/http/event-stream.ts'
import { makeTopic, type Topic } from './topics.ts'

const LOOK_EVERY_MS = 1_000
const LOOK_EVERY_MAX_MS = 10_000
/** Looking takes at most this part of the time: at a large or slow database it looks less often. */
const SHARE = 1 / 20
/** A timer may ring a little early. */
const TIMER_SLACK_MS = 50
const CHECK_EVERY_MS = 3_000
/** Of the checks, every so many a line is sent that means nothing, so that nobody in between takes the stream for dead. */
const CHECKS_PER_BEAT = 5
const STREAMS_MAX = 500
const STREAMS_PER_CALLER = 20
const TOPICS_MAX = 10

/** A tab, or a program that listens. */
type Listener = {
  readonly stream: EventStream
  readonly topics: readonly Watched[]
  readonly caller: string
  readonly isAllowed: () => Promise<boolean>
  readonly lastEventId: string | undefined
}

type Watched = {
  readonly name: string
  readonly topic: Topic
  readonly listeners: Set<Listener>
  readonly newcomers: Set<Listener>
  lookedAt: number
  /** How long the last look took. */
  tookMs: number
}

export type Listening = {
  readonly topics: readonly string[]
  readonly caller: Caller
  readonly isAllowed: () => Promise<boolean>
  readonly lastEventId: string | undefined
  readonly signal: AbortSignal
}

const hubs = new WeakMap<Ground['store'], Hub>()

/** The one hub of a server. */
export function hubOf(ground: Ground): Hub {
  const hub = hubs.get(ground.store) ?? new Hub(ground)
  hubs.set(ground.store, hub)
  return hub
}

/**
 * Tells everybody who listens what has changed. It looks at each topic once a second for all of them together, and at
 * nothing at all while nobody listens.
 */
class Hub {
  readonly #ground: Ground
  readonly #listeners = new Set<Listener>()
  readonly #watched = new Map<string, Watched>()
  #wake = new AbortController()
  #isLooking = false
  #checks: NodeJS.Timeout | undefined
  #checked = 0
  /** Since when the database has not answered. */
  #trouble: Uint8Array | null = null

  constructor(ground: Ground) {
    this.#ground = ground
    ground.closing.addEventListener('abort', () => {
      for (const { stream } of this.#listeners) stream.close()
    })
  }

  /** A stream of these topics, until the reader leaves, may no longer have it, or the server ends. */
  listen({ topics, caller, signal, isAllowed, lastEventId }: Listening): Response {
    const name = callerName(caller)
    this.#refuseOdd(topics)
    this.#refuseTooMany(name)
    const watched = [...new Set(topics)].map((topic) => this.#watch(topic))
    const stream = new EventStream()
    const listener = { stream, topics: watched, caller: name, isAllowed, lastEventId }
    this.#listeners.add(listener)
    for (const one of watched) one.newcomers.add(listener)
    this.#checks ??= setInterval(() => void this.#check(), CHECK_EVERY_MS)
    stream.ended.addEventListener('abort', () => this.#leave(listener), { once: true })
    signal.addEventListener('abort', () => stream.close(), { once: true })
    if (signal.aborted || this.#ground.closing.aborted) stream.close()
    if (this.#trouble) stream.send(this.#trouble)
    this.#wake.abort()
    if (!this.#isLooking) void this.#lookWhileHeard()
    return stream.response
  }

  #refuseTooMany(caller: string): void {
    const own = [...this.#listeners].filter((one) => one.caller === caller).length
    const isTooMany = caller !== LOCAL && own >= STREAMS_PER_CALLER
    if (isTooMany || this.#listeners.size >= STREAMS_MAX) throw tooManyRequests(10, 'open streams')
  }

  #refuseOdd(topics: readonly string[]): void {
    if (topics.length > TOPICS_MAX) throw badRequest([`topics are ${TOPICS_MAX} at most`])
    const odd = topics.filter((name) => makeTopic(name, this.#ground) === null)
    if (odd.length === 0) return
    const list = odd.map((name) => JSON.stringify(name)).join(', ')
    throw badRequest([
      `there is no topic ${list}; there are overview, workers, trail, run:ID and log:ID`,
    ])
  }

  #watch(name: string): Watched {
    const watched: Watched = this.#watched.get(name) ?? {
      name,
      topic: makeTopic(name, this.#ground)!,
      listeners: new Set(),
      newcomers: new Set(),
      lookedAt: -Infinity,
      tookMs: 0,
    }
    this.#watched.set(name, watched)
    return watched
  }

  #leave(listener: Listener): void {
    this.#listeners.delete(listener)
    for (const { name, listeners, newcomers } of listener.topics) {
      listeners.delete(listener)
      newcomers.delete(listener)
      if (listeners.size + newcomers.size === 0) this.#watched.delete(name)
    }
    if (this.#listeners.size > 0) return
    clearInterval(this.#checks)
    this.#checks = undefined
    this.#wake.abort()
  }

  async #lookWhileHeard(): Promise<void> {
    this.#isLooking = true
    while (this.#listeners.size > 0) {
      this.#wake = new AbortController()
      const pauseMs = this.#pauseMs()
      await this.#lookAtAll(performance.now() - pauseMs)
      await REAL_CLOCK.sleep(pauseMs, this.#wake.signal)
    }
    this.#isLooking = false
    this.#trouble = null
  }

  #pauseMs(): number {
    const tookMs = [...this.#watched.values()].reduce((sum, one) => sum + one.tookMs, 0)
    return Math.min(LOOK_EVERY_MAX_MS, Math.max(LOOK_EVERY_MS, tookMs / SHARE))
  }

  /** Once around. What was looked at since then is not looked at again for the sake of a newcomer. */
  async #lookAtAll(since: number): Promise<void> {
    let trouble: unknown
    for (const one of this.#watched.values()) {
      try {
        if (one.lookedAt <= since + TIMER_SLACK_MS) await this.#look(one)
        await this.#greet(one)
      } catch (error) {
        trouble ??= error
        if (error instanceof StoreUnavailable) break
      }
    }
    if (trouble) this.#tellTrouble(trouble)
    else if (this.#trouble) {
      this.#trouble = null
      this.#tellAll(eventFrame('back', safeJson({ at: iso(Date.now()) })))
    }
  }

  async #look(one: Watched): Promise<void> {
    const startedAt = performance.now()
    const frame = await one.topic.look()
    one.lookedAt = startedAt
    one.tookMs = performance.now() - startedAt
    if (frame) for (const { stream } of one.listeners) stream.send(frame)
  }

  async #greet({ topic, newcomers, listeners }: Watched): Promise<void> {
    for (const listener of newcomers) {
      const frame = await topic.greet(listener.lastEventId)
      if (frame) listener.stream.send(frame)
      if (newcomers.delete(listener)) listeners.add(listener)
    }
  }

  #tellTrouble(error: unknown): void {
    if (this.#trouble) return
    const message =
      error instanceof UnstuckError ? redact(messageOf(error)) : 'The database could not be read.'
    this.#trouble = eventFrame('trouble', safeJson({ since: iso(Date.now()), message }))
    this.#tellAll(this.#trouble)
  }

  #tellAll(frame: Uint8Array): void {
    for (const { stream } of this.#listeners) stream.send(frame)
  }

  /** Beside the looking, which may wait long for a database: whose right has ended is cut off within seconds. */
  async #check(): Promise<void> {
    if (++this.#checked % CHECKS_PER_BEAT === 0) this.#tellAll(BEAT)
    // All at once: one that is slow to check must not keep the others open.
    await Promise.all(
      [...this.#listeners].map(async ({ stream, isAllowed }) => {
        if (!(await isAllowed().catch(() => false))) stream.close()
      }),
    )
  }
}

/** Everybody on this machine is one caller there: only the sum is limited. */
const LOCAL = ''

function callerName({ by, name }: Caller): string {
  return by === 'local' ? LOCAL : `${by} ${name}`
}
