import type { ChannelName } from '../../model/alert-rule.ts'
import type { AlertMessage } from './message.ts'

/** A way to people. */
export interface Channel {
  readonly name: ChannelName
  /** Resolves when it was taken; else throws `NotTaken`. Ends within seconds, or at once when the signal fires. */
  send(message: AlertMessage, signal: AbortSignal): Promise<void>
}

/** A channel did not take a message. What it says can be shown to anybody: no address, no secret, no answer. */
export class NotTaken extends Error {}

/** Longest that one try may take. */
export const TRY_MS = 5_000
