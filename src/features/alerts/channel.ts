import { hash } from 'node:crypto'
import type { ChannelName } from './rule.ts'
import type { AlertMessage } from './message.ts'

/** Sends messages to people. */
export interface Channel {
  readonly name: ChannelName
  /** Two channels with the same destination reach the same people. Stored in the database. */
  readonly destination: string
  /** Resolves when the message was accepted. Rejects within seconds, or at once when the signal fires. @throws DeliveryError */
  send(message: AlertMessage, signal: AbortSignal): Promise<void>
}

/** A channel did not accept a message. The text holds no address, no secret and no response, so it can be shown. */
export class DeliveryError extends Error {}

/** Maximum duration of one attempt. */
export const ATTEMPT_TIMEOUT_MS = 5_000

/** A fingerprint that does not reveal the address. Leave passwords out of `parts`: a weak one could be guessed from it. */
export function destinationOf(name: ChannelName, parts: readonly string[]): string {
  return `${name} ${hash('sha256', JSON.stringify(parts)).slice(0, 12)}`
}
