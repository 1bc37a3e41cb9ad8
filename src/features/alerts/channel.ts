import { hash } from 'node:crypto'
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
