import { hash } from 'node:crypto'
import type { Clock } from '../../core/host/clock.ts'
import type { ChannelName } from './rule.ts'
import type { AlertMessage } from './message.ts'

/** Sends messages to one destination. */
export interface Channel {
  readonly name: ChannelName
  /** Two channels with the same destination reach the same recipients. Stored in the database. */
  readonly destination: string
  /** Resolves when the message was accepted. Rejects within seconds, or at once when the signal fires. @throws DeliveryError */
  send(message: AlertMessage, signal: AbortSignal): Promise<void>
}

/** A channel did not accept a message. The text holds no address, no secret and no response, so it can be shown. */
export class DeliveryError extends Error {}

/** Why a channel did not accept a message. The text of any other error may contain an address or a secret. */
export function deliveryFailure(error: unknown): string {
  return error instanceof DeliveryError ? error.message : 'it failed'
}

/** Maximum duration of one attempt. */
export const ATTEMPT_TIMEOUT_MS = 5_000

/** A fingerprint that does not reveal the address. Leave passwords out of `parts`: a weak one could be guessed from it. */
export function destinationOf(name: ChannelName, parts: readonly string[]): string {
  return `${name} ${hash('sha256', JSON.stringify(parts)).slice(0, 12)}`
}

/** Why the receiver, named as in `the mail server`, could not be reached: a network error names the host, so only its kind is shown. */
export function unreachable(receiver: string, { code }: { code?: unknown }): DeliveryError {
  const kind = typeof code === 'string' && /^[A-Z][A-Z0-9_]{2,60}$/.test(code) ? ` (${code})` : ''
  return new DeliveryError(`${receiver} could not be reached${kind}`)
}

export function stoppedBeforeAnswer(): DeliveryError {
  return new DeliveryError('it was stopped before there was an answer')
}

/** Messages that wait for a channel. Further ones are dropped: the store knows that they were not delivered. */
const QUEUE_MAX = 100
/** Between attempts. After the last one the message is dropped. */
const RETRY_DELAYS_MS = [1_000, 5_000, 30_000, 120_000]

type QueuedMessage = {
  readonly message: AlertMessage
  readonly resolve: (delivered: boolean) => void
  attempts: number
}

/** Sends the messages of one channel one after the other. A dead channel does not delay the others. */
export class ChannelQueue {
  readonly #channel: Channel
  readonly #clock: Clock
  readonly #log: (text: string) => void
  readonly #stopping = new AbortController()
  #queue: QueuedMessage[] = []
  #work: Promise<void> | null = null
  #lastError: string | null = null

  constructor(channel: Channel, clock: Clock, log: (text: string) => void) {
    this.#channel = channel
    this.#clock = clock
    this.#log = log
  }

  /** Resolves, perhaps minutes later, with whether the message was accepted. Never rejects. */
  send(message: AlertMessage): Promise<boolean> {
    if (this.#stopping.signal.aborted || this.#queue.length >= QUEUE_MAX)
      return Promise.resolve(false)
    const { promise, resolve } = Promise.withResolvers<boolean>()
    this.#queue.push({ message, resolve, attempts: 0 })
    this.#work ??= this.#drain()
    return promise
  }

  /** Drops what is still queued. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#work
  }

  async #drain(): Promise<void> {
    for (let first = this.#queue[0]; first; first = this.#queue[0]) {
      const isDone = (await this.#attempt(first)) || this.#stopping.signal.aborted
      if (isDone || first.attempts > RETRY_DELAYS_MS.length) {
        this.#queue.shift()
        first.resolve(isDone && !this.#stopping.signal.aborted)
      } else {
        const waitMs = RETRY_DELAYS_MS[first.attempts - 1]! * (0.75 + this.#clock.random() / 2)
        await this.#clock.sleep(waitMs, this.#stopping.signal)
      }
    }
    this.#work = null
  }

  async #attempt(queued: QueuedMessage): Promise<boolean> {
    if (this.#stopping.signal.aborted) return false
    queued.attempts++
    try {
      await this.#channel.send(queued.message, this.#stopping.signal)
      this.#logChange(null)
      return true
    } catch (error) {
      this.#logChange(deliveryFailure(error))
      return false
    }
  }

  /** Logs when a failure begins and when it ends, not each message. */
  #logChange(error: string | null): void {
    const previous = this.#lastError
    if (this.#stopping.signal.aborted) return
    this.#lastError = error
    if (error !== null && previous === null)
      this.#log(`alerts: ${this.#channel.name} did not take a message: ${error}. It is tried again`)
    if (error === null && previous !== null)
      this.#log(`alerts: ${this.#channel.name} takes messages again`)
  }
}
