import type { RunId, WorkerId } from './id.ts'
import type { Policy } from './policy.ts'
import type { TargetStatus } from './target.ts'
import type { Millis } from './time.ts'

export const RUN_STATUSES = [
  'queued',
  'running',
  'interrupted',
  'succeeded',
  'failed',
  'cancelled',
  'abandoned',
] as const
/** Where a run stands. `interrupted`: stopped with work left; the next worker continues it. */
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
  /** What the crawl reported as skipped. */
  readonly skipped: number
  /** Writes by a claim that was no longer the current one. */
  readonly refused: number
}

/** The row of a user's own table that a run, or a target, is. */
export type AdoptedRef = {
  /** The table's name in the config. */
  readonly table: string
  /** The row's own id, as text. */
  readonly key: string
}

/** What a person can have done to rows of a table of their own, where it has the words for it. */
export const ADOPTED_ACTIONS = ['cancel', 'resume', 'park'] as const
export type AdoptedAction = (typeof ADOPTED_ACTIONS)[number]

/** A run that is such a row, or such a table. */
export type AdoptedRun = AdoptedRef & {
  /** Actions that its table has a status for, whatever the row's status is: all others are refused. */
  readonly can: readonly AdoptedAction[]
  /** Verdicts that its table has no word for, each with what to map; left out when there is none. */
  readonly cannot?: Readonly<Record<string, string>>
}

/** `row 4711 of courses`; a table of targets is one run as a whole. */
export function describeRow({ table, key }: AdoptedRef): string {
  return key === '' ? `the table ${table}` : `row ${key} of ${table}`
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
  readonly lastActivityAt: Millis
  readonly counts: Counts
  /** The progress that a run with one target reported; null for a crawl, or if it reported none. */
  readonly progress: { readonly done: number; readonly total: number } | null
  /** How often it was taken up again. */
  readonly resumes: number
  /** How often it was tried again from nothing: carried from the run this one follows. */
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
  /** As given when the run was queued or last worked on, so that any process can judge it. */
  readonly policy: Policy
  /** Left out for a run of our own. */
  readonly adopted?: AdoptedRun
  /** Of a row in a user's own table: what stood there when it was read. */
  readonly rowHash?: string
}

/** It is one row of a user's own table, and has no known targets. */
export function isAdoptedRow({ adopted, kind }: Pick<Run, 'adopted' | 'kind'>): boolean {
  return adopted !== undefined && kind === 'single'
}

export function countOpenTargets(counts: Counts): number {
  return counts.targets.planned + counts.targets.in_progress
}

export function countTargets(counts: Counts): number {
  return Object.values(counts.targets).reduce((sum, n) => sum + n, 0)
}

/** Targets for a crawl; for a run with one target what it reported, else 0/1. */
export function progressOf(run: Run): { done: number; total: number } {
  if (run.progress) return { done: run.progress.done, total: run.progress.total }
  const { targets } = run.counts
  return { done: targets.done, total: run.kind === 'single' ? 1 : countTargets(run.counts) }
}
