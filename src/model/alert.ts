import type { RunId } from './id.ts'
import type { Millis } from './time.ts'

/** Something that a person should know, for as long as it is so. */
export type Alert = {
  /** What it is about; the same cause is the same alert, however often it is seen. */
  readonly cause: string
  readonly rule: string
  readonly source: string | null
  readonly run: RunId | null
  readonly because: string
  /** What to type. */
  readonly command: string
  /** When it was first seen; set anew when a resolved cause comes back. */
  readonly since: Millis
  readonly lastSeenAt: Millis
  /** When people were last told; null: not yet. */
  readonly lastSentAt: Millis | null
  /** Null: it is open. */
  readonly resolvedAt: Millis | null
}
