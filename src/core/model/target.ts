import type { ClaimId, RunId, TargetId, WorkerId } from './id.ts'
import type { Millis } from './time.ts'
import type { RunOrigin } from './traits.ts'

export const TARGET_STATUSES = [
  'planned',
  'in_progress',
  'done',
  'failed',
  'stuck',
  'parked',
] as const
/** The status of a target. `planned`: waits for a worker. `stuck` and `parked` need an operator. */
export type TargetStatus = (typeof TARGET_STATUSES)[number]

/** In these a target needs an operator. */
export const DEAD_LETTER_STATUSES = ['failed', 'stuck', 'parked'] as const
export type DeadLetterStatus = (typeof DEAD_LETTER_STATUSES)[number]

/** A target to plan. The same key twice is one target. */
export type TargetInput = {
  readonly key: string
  readonly group?: string
  readonly url?: string
  /** Passed to its page handler with each page; any JSON. */
  readonly data?: unknown
  /** The cursor before its first page. */
  readonly cursor?: unknown
  /** Goes to the front of the queue, before others that were put there. */
  readonly forefront?: boolean
  /** It was done elsewhere: it is recorded and never claimed. */
  readonly done?: boolean
}

/** Where the next worker continues. It changes as a whole, with a page. */
export type Cursor = {
  /** Checkpoints committed so far. Each page names the one it follows. */
  readonly seq: number
  /** The last completed page; 0 before the first. It only grows. */
  readonly page: number
  readonly pageTarget: number | null
  readonly next: string | null
  readonly lastItemId: string | null
  /** Data of the crawl; any JSON. */
  readonly cursor: unknown
}

/** One unit of a run's work that must reach its end, however many workers die on the way. */
export type Target = Cursor & {
  readonly id: TargetId
  readonly run: RunId
  readonly key: string
  readonly group: string | null
  readonly url: string | null
  readonly status: TargetStatus
  /** Counts every claim ever made; distinguishes a late worker from the current one. */
  readonly epoch: number
  /** The current claim, or the last one if the target is not claimed. */
  readonly claimId: ClaimId | null
  readonly worker: WorkerId | null
  readonly claimedAt: Millis | null
  /** Claims that did not end in a clean stop. It is never reset. */
  readonly attempts: number
  /** Errors of its handler since its last page. */
  readonly errors: number
  /** Workers lost while they held it, since its last page. */
  readonly crashes: number
  /** Of these, how many held nothing else: only they count towards parking. */
  readonly crashesAlone: number
  readonly lastActivityAt: Millis
  readonly lastError: string | null
  readonly finishedAt: Millis | null
  /** When an operator acknowledged that it failed, is stuck or parked; null again once that changes. */
  readonly acknowledgedAt: Millis | null
  /** The row of a table of your own that it is; omitted for all else. */
  readonly origin?: RunOrigin
  /** In a list: its error, cursor or next address is longer than what is here. */
  readonly cut?: true
}

/** The fields of a target that the assessment of its run needs. */
export type OnlyTarget = Pick<
  Target,
  'status' | 'worker' | 'seq' | 'page' | 'pageTarget' | 'errors' | 'crashesAlone' | 'lastActivityAt'
>
