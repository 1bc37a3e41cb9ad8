import { hash } from 'node:crypto'
import type { ChannelName } from '../../core/model/alert-rule.ts'
import type { AlertMessage } from './message.ts'

/** A way to people. */
export interface Channel {
  readonly name: ChannelName
  /** Which people: two channels with the same destination reach the same ones. It is kept in the database. */
  readonly destination: string
  /** Resolves when it was taken; else throws `NotTaken`. Ends within seconds, or at once when the signal fires. */
  send(message: AlertMessage, signal: AbortSignal): Promise<void>
}

/** A channel did not take a message. What it says can be shown to anybody: no address, no secret, no answer. */
export class DeliveryError extends Error {}

/** Longest that one try may take. */
export const ATTEMPT_TIMEOUT_MS = 5_000

/** A fingerprint, from which nobody learns the address. Passwords are no part of `where`: a weak one could be guessed from it. */
export function destinationOf(name: ChannelName, parts: readonly string[]): string {
  return `${name} ${hash('sha256', JSON.stringify(parts)).slice(0, 12)}`
}
