import type { WorkerId } from './id.ts'
import type { Millis } from './time.ts'

/**
 * The right to start copies of a source's command. The wrapping process holds it for its whole life, also between
 * cycles, so that a second copy starts only when every process of the first is gone.
 */
export type SourceLock = {
  readonly source: string
  /** Null: free. */
  readonly worker: WorkerId | null
  readonly since: Millis | null
  /** How long the holder's command may take to end once it is asked to. */
  readonly killTimeoutMs: number
  /** The holder is ending its command: it will be free soon. */
  readonly unlockingSince: Millis | null
  /** Random, made with the source's first guard and kept: each process of its commands carries it in the environment. */
  readonly processTag: string
  /** Set when the last holder gave up starting the command again; cleared by the next one. */
  readonly gaveUp: {
    readonly at: Millis
    readonly because: string
    /** The last run of the source was acknowledged since. */
    readonly isAcknowledged: boolean
  } | null
}
