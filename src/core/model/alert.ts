import type { RunId } from './id.ts'
import type { Millis } from './time.ts'

/** Something that a person should know, for as long as it is so. */
export type Alert = {
  /** What it is about; the same cause is the same alert, however often it is seen. */
  readonly cause: string
  /** Hash of the alert rules that opened it: only a process with the same rules resolves it. */
  readonly owner: string
  readonly rule: string
  readonly source: string | null
  readonly run: RunId | null
  readonly because: string
  /** What to type. */
  readonly command: string
  /** When it was first seen; reset when a resolved alert is raised again. */
  readonly since: Millis
  readonly lastSeenAt: Millis
  /** When the last notification was sent, perhaps before `since`; null: never. */
  readonly lastSentAt: Millis | null
  /** By destination. */
  readonly deliveries: Readonly<Record<string, AlertDelivery>>
  /** Null: it is open. */
  readonly resolvedAt: Millis | null
}

/** What those at one destination heard of an alert, and when last. What is older than the alert they heard of an earlier one. */
export type AlertDelivery = {
  /** That it is so. */
  readonly sentAt: Millis | null
  /** That it is over. */
  readonly endedAt: Millis | null
}

/** An owner that has not confirmed its alert for this long has ended: the next process that finds the same cause takes it over. */
export const ALERT_OWNER_TIMEOUT_MS = 120_000
