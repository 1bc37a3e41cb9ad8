import type { RunId, WorkerId } from './id.ts'
import type { Policy } from './policy.ts'
import type { TargetStatus } from './target.ts'
import type { Millis } from './time.ts'
import type { RunTraits } from './traits.ts'
import type { ProcessIdentity } from './worker.ts'

export const RUN_STATUSES = [
  'queued',
  'running',
  'interrupted',
  'succeeded',
  'failed',
  'cancelled',
  'abandoned',
] as const
/** The status of a run. `interrupted`: stopped with work left; the next worker continues it. */
export type RunStatus = (typeof RUN_STATUSES)[number]

/** A source has at most one run in these, by a unique index. */
export const LIVE_STATUSES = ['queued', 'running', 'interrupted'] as const

export function isLive(status: RunStatus): boolean {
  return (LIVE_STATUSES as readonly string[]).includes(status)
}

/** `crawl`: many targets, many workers. `single`: one target, one owner (`begin`, a wrapped command). */
export type RunKind = 'crawl' | 'single'

/** Kept in the transactions that change them, per run, group and worker; never counted from rows. */
export type Counts = {
  readonly targets: Readonly<Record<TargetStatus, number>>
  readonly pages: number
  readonly itemsNew: number
  readonly itemsUpdated: number
  readonly itemsUnchanged: number
  /** What pages reported as left out. */
  readonly skipped: number
  /** Pages that threw: their targets were retried, failed or parked. */
  readonly errors: number
  /** Writes by a claim that was no longer the current one. */
  readonly refused: number
}

/** Since when a source is paused, and why. */
export type Paused = { readonly at: Millis; readonly because: string }

/** Null is unknown: a row of a user's own table may have one of both. */
export type RunProgress = { readonly done: number | null; readonly total: number | null }

/** Formats a reason after the time of the pause: `: the site is down`, or ` by root@vm` where no other was given. */
export function pauseReason({ because }: { readonly because: string }): string {
  return because.startsWith('paused by ') ? because.slice('paused'.length) : `: ${because}`
}

/** One execution for a source. */
export type Run = {
  readonly id: RunId
  readonly source: string
  readonly kind: RunKind
  readonly status: RunStatus
  readonly createdAt: Millis
  /** Set by the first claim. */
  readonly startedAt: Millis | null
  /** When it was last taken up again after an interruption: `maxDuration` counts from here. */
  readonly resumedAt: Millis | null
  /** When an operator reopened it; null once it has had an owner since. Until then nothing automatic ends it. */
  readonly reopenedAt: Millis | null
  /** Set when all targets are in. Until then the run cannot end. */
  readonly plannedAt: Millis | null
  readonly finishedAt: Millis | null
  /** When an operator acknowledged how it ended; null again once it is reopened. */
  readonly acknowledgedAt: Millis | null
  /** Its source is paused: nothing of it is claimed. Pages in hand are finished, and a run with one target ends. */
  readonly paused: Paused | null
  readonly lastActivityAt: Millis
  readonly counts: Counts
  /** The progress that a run with one target reported; null for a crawl, or if it reported none. */
  readonly progress: RunProgress | null
  /** How often it was taken up again. */
  readonly resumes: number
  /** How often it was retried from the start: carried over from the run that this one replaces. */
  readonly retries: number
  readonly retryOf: RunId | null
  readonly error: string | null
  /** In a list: its error or input is longer than what is here. */
  readonly cut?: true
  /** What the command of a queued run was given; null when nothing was. */
  readonly input: unknown
  /** Files in the output directory of a wrapped command. One is progress. */
  readonly artifacts: number
  /** The worker of a run with one target; a crawl has many and no owner. */
  readonly owner: WorkerId | null
  /** The process of the owner, where it was read with the run: in a row of a user's own table. */
  readonly ownerProcess?: Pick<ProcessIdentity, 'host' | 'pid'>
  /** As given when the run was queued or last worked on, so that any process can assess it. */
  readonly policy: Policy
  /** What can be done with it. */
  readonly traits: RunTraits
  /** Of a row in a table of your own: identifies its values when it was read. */
  readonly rowHash?: string
}

export function countOpenTargets(counts: Counts): number {
  return counts.targets.planned + counts.targets.in_progress
}

export function countTargets(counts: Counts): number {
  return Object.values(counts.targets).reduce((sum, n) => sum + n, 0)
}
