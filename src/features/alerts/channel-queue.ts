import { NotTaken, type Channel } from './channel.ts'
import type { AlertMessage } from './message.ts'
import type { Clock } from '../../core/host/clock.ts'

/** Waiting for a channel that does not answer. More are not kept: the store still knows that nobody was told. */
const QUEUE_MAX = 100
/** Between tries. After the last one the message is given up. */
const WAITS_MS = [1_000, 5_000, 30_000, 120_000]

type Waiting = {
  readonly message: AlertMessage
  readonly end: (taken: boolean) => void
  tries: number
}

/** What is on its way through one channel, one after the other. A dead channel keeps nobody else waiting. */
export class Outlet {
  readonly #channel: Channel
  readonly #clock: Clock
  readonly #log: (text: string) => void
  readonly #stopping = new AbortController()
  #queue: Waiting[] = []
  #work: Promise<void> | null = null
  #trouble: string | null = null

  constructor(channel: Channel, clock: Clock, log: (text: string) => void) {
    this.#channel = channel
    this.#clock = clock
    this.#log = log
  }

  /** Answers whether it was taken, which may be minutes later. Never rejects. */
  send(message: AlertMessage): Promise<boolean> {
    if (this.#stopping.signal.aborted || this.#queue.length >= QUEUE_MAX)
      return Promise.resolve(false)
    const { promise, resolve } = Promise.withResolvers<boolean>()
    this.#queue.push({ message, end: resolve, tries: 0 })
    this.#work ??= this.#empty()
    return promise
  }

  /** What is still on its way is given up at once. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#work
  }

  async #empty(): Promise<void> {
    for (let first = this.#queue[0]; first; first = this.#queue[0]) {
      const isOver = (await this.#try(first)) || this.#stopping.signal.aborted
      if (isOver || first.tries > WAITS_MS.length) {
        this.#queue.shift()
        first.end(isOver && !this.#stopping.signal.aborted)
      } else {
        const waitMs = WAITS_MS[first.tries - 1]! * (0.75 + this.#clock.random() / 2)
        await this.#clock.sleep(waitMs, this.#stopping.signal)
      }
    }
    this.#work = null
  }

  async #try(waiting: Waiting): Promise<boolean> {
    if (this.#stopping.signal.aborted) return false
    waiting.tries++
    try {
      await this.#channel.send(waiting.message, this.#stopping.signal)
      this.#say(null)
      return true
    } catch (error) {
      // What another error says may hold an address or more.
      this.#say(error instanceof NotTaken ? error.message : 'it failed')
      return false
    }
  }

  /** Said when it begins and when it is over, however many messages it meets. */
  #say(trouble: string | null): void {
    const was = this.#trouble
    if (this.#stopping.signal.aborted) return
    this.#trouble = trouble
    if (trouble !== null && was === null)
      this.#log(
        `alerts: ${this.#channel.name} did not take a message: ${trouble}. It is tried again`,
      )
    if (trouble === null && was !== null)
      this.#log(`alerts: ${this.#channel.name} takes messages again`)
  }
}
