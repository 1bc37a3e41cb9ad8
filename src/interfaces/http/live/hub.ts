import { messageOf, StoreUnavailableError, UnstuckError } from '../../../core/model/errors.ts'
import { iso } from '../../../core/model/time.ts'
import { redact } from '../../../core/model/redact.ts'
import { safeJson } from '../../../lib/text/safe-text.ts'
import { REAL_CLOCK } from '../../../core/host/clock.ts'
import { badRequest, tooManyRequests } from '../http-error.ts'
import type { Caller, ServerContext } from '../../../contracts/route.ts'
import { KEEPALIVE, eventFrame, EventStream } from '../../../lib/http/event-stream.ts'
import { makeTopic, type Topic } from './topics.ts'

const POLL_MS = 1_000
const POLL_MAX_MS = 10_000
/** Reads take at most this share of the time: a large or slow database is read less often. */
const POLL_SHARE = 1 / 20
/** A timer may fire slightly early. */
const TIMER_SLACK_MS = 50
const CHECK_EVERY_MS = 3_000
/** A keepalive is sent with every n-th check, so that proxies keep the stream open. */
const CHECKS_PER_KEEPALIVE = 5
const STREAMS_MAX = 500
const STREAMS_PER_CALLER = 20
const TOPICS_MAX = 10

/** A connected client: a browser tab or a program. */
type Listener = {
  readonly stream: EventStream
  readonly topics: readonly TopicState[]
  readonly caller: string
  readonly isAllowed: () => Promise<boolean>
  readonly lastEventId: string | undefined
}

type TopicState = {
  readonly name: string
  readonly topic: Topic
  readonly listeners: Set<Listener>
  readonly pending: Set<Listener>
  polledAt: number
  /** How long the last read took. */
  pollMs: number
}

export type ListenOptions = {
  readonly topics: readonly string[]
  readonly caller: Caller
  readonly isAllowed: () => Promise<boolean>
  readonly lastEventId: string | undefined
  readonly signal: AbortSignal
}

const hubs = new WeakMap<ServerContext['store'], Hub>()

/** Returns the hub of a server. */
export function hubOf(server: ServerContext): Hub {
  const hub = hubs.get(server.store) ?? new Hub(server)
  hubs.set(server.store, hub)
  return hub
}

/**
 * Sends changes to all connected clients. It reads each topic once a second for all of them together, and nothing without
 * clients.
 */
class Hub {
  readonly #server: ServerContext
  readonly #listeners = new Set<Listener>()
  readonly #topics = new Map<string, TopicState>()
  #wake = new AbortController()
  #isPolling = false
  #checks: NodeJS.Timeout | undefined
  #checkCount = 0
  /** When the database became unreachable. */
  #storeError: Uint8Array | null = null

  constructor(server: ServerContext) {
    this.#server = server
    server.closing.addEventListener('abort', () => {
      for (const { stream } of this.#listeners) stream.close()
    })
  }

  /** Returns a stream of these topics. It ends with the client, its access, or the server. */
  listen({ topics, caller, signal, isAllowed, lastEventId }: ListenOptions): Response {
    const name = callerName(caller)
    this.#rejectUnknown(topics)
    this.#rejectTooMany(name)
    const states = [...new Set(topics)].map((topic) => this.#openTopic(topic))
    const stream = new EventStream()
    const listener = { stream, topics: states, caller: name, isAllowed, lastEventId }
    this.#listeners.add(listener)
    for (const one of states) one.pending.add(listener)
    this.#checks ??= setInterval(() => void this.#check(), CHECK_EVERY_MS)
    stream.ended.addEventListener('abort', () => this.#leave(listener), { once: true })
    signal.addEventListener('abort', () => stream.close(), { once: true })
    if (signal.aborted || this.#server.closing.aborted) stream.close()
    if (this.#storeError) stream.send(this.#storeError)
    this.#wake.abort()
    if (!this.#isPolling) void this.#pollWhileListening()
    return stream.response
  }

  #rejectTooMany(caller: string): void {
    const own = [...this.#listeners].filter((one) => one.caller === caller).length
    const isTooMany = caller !== LOCAL && own >= STREAMS_PER_CALLER
    if (isTooMany || this.#listeners.size >= STREAMS_MAX) throw tooManyRequests(10, 'open streams')
  }

  #rejectUnknown(topics: readonly string[]): void {
    if (topics.length > TOPICS_MAX) throw badRequest([`topics are ${TOPICS_MAX} at most`])
    const unknownTopics = topics.filter((name) => makeTopic(name, this.#server) === null)
    if (unknownTopics.length === 0) return
    const list = unknownTopics.map((name) => JSON.stringify(name)).join(', ')
    throw badRequest([
      `there is no topic ${list}; there are overview, workers, trail, run:ID and log:ID`,
    ])
  }

  #openTopic(name: string): TopicState {
    const states: TopicState = this.#topics.get(name) ?? {
      name,
      topic: makeTopic(name, this.#server)!,
      listeners: new Set(),
      pending: new Set(),
      polledAt: -Infinity,
      pollMs: 0,
    }
    this.#topics.set(name, states)
    return states
  }

  #leave(listener: Listener): void {
    this.#listeners.delete(listener)
    for (const { name, listeners, pending } of listener.topics) {
      listeners.delete(listener)
      pending.delete(listener)
      if (listeners.size + pending.size === 0) this.#topics.delete(name)
    }
    if (this.#listeners.size > 0) return
    clearInterval(this.#checks)
    this.#checks = undefined
    this.#wake.abort()
  }

  async #pollWhileListening(): Promise<void> {
    this.#isPolling = true
    while (this.#listeners.size > 0) {
      this.#wake = new AbortController()
      const pauseMs = this.#pauseMs()
      await this.#pollAll(performance.now() - pauseMs)
      await REAL_CLOCK.sleep(pauseMs, this.#wake.signal)
    }
    this.#isPolling = false
    this.#storeError = null
  }

  #pauseMs(): number {
    const pollMs = [...this.#topics.values()].reduce((sum, one) => sum + one.pollMs, 0)
    return Math.min(POLL_MAX_MS, Math.max(POLL_MS, pollMs / POLL_SHARE))
  }

  /** Reads every topic once, except those read since the given time. */
  async #pollAll(since: number): Promise<void> {
    let firstError: unknown
    for (const one of this.#topics.values()) {
      try {
        if (one.polledAt <= since + TIMER_SLACK_MS) await this.#poll(one)
        await this.#sendSnapshot(one)
      } catch (error) {
        firstError ??= error
        if (error instanceof StoreUnavailableError) break
      }
    }
    if (firstError) this.#broadcastError(firstError)
    else if (this.#storeError) {
      this.#storeError = null
      this.#broadcast(eventFrame('back', safeJson({ at: iso(Date.now()) })))
    }
  }

  async #poll(one: TopicState): Promise<void> {
    const startedAt = performance.now()
    const frame = await one.topic.poll()
    one.polledAt = startedAt
    one.pollMs = performance.now() - startedAt
    if (frame) for (const { stream } of one.listeners) stream.send(frame)
  }

  async #sendSnapshot({ topic, pending, listeners }: TopicState): Promise<void> {
    for (const listener of pending) {
      const frame = await topic.snapshot(listener.lastEventId)
      if (frame) listener.stream.send(frame)
      if (pending.delete(listener)) listeners.add(listener)
    }
  }

  #broadcastError(error: unknown): void {
    if (this.#storeError) return
    const message =
      error instanceof UnstuckError ? redact(messageOf(error)) : 'The database could not be read.'
    this.#storeError = eventFrame('trouble', safeJson({ since: iso(Date.now()), message }))
    this.#broadcast(this.#storeError)
  }

  #broadcast(frame: Uint8Array): void {
    for (const { stream } of this.#listeners) stream.send(frame)
  }

  /** Ends streams without access. Runs beside the reads, which may wait for the database. */
  async #check(): Promise<void> {
    if (++this.#checkCount % CHECKS_PER_KEEPALIVE === 0) this.#broadcast(KEEPALIVE)
    // In parallel: a slow check must not keep the others open.
    await Promise.all(
      [...this.#listeners].map(async ({ stream, isAllowed }) => {
        if (!(await isAllowed().catch(() => false))) stream.close()
      }),
    )
  }
}

/** All local callers count as one: only their sum is limited. */
const LOCAL = ''

function callerName({ by, name }: Caller): string {
  return by === 'local' ? LOCAL : `${by} ${name}`
}
