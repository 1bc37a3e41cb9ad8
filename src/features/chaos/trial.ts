import type { KillTarget } from './process-run.ts'
import type { Progress } from './progress.ts'
import type { Signal } from './schedule.ts'

/** The command to test, and how. */
export type Trial = {
  readonly command: readonly string[]
  readonly seed: number
  /** Maximum number; undefined: as many as fit into `forMs`. */
  readonly kills: number | undefined
  /** No kills after this time. */
  readonly forMs: number | undefined
  readonly signal: Signal | 'mix'
  readonly whom: KillTarget
  /** Longest time from the first page after a start to the kill; undefined: computed from the reference. */
  readonly withinMs: number | undefined
  /** Longest time from a start to the exit. */
  readonly timeoutMs: number
  /** A file that the command writes, relative to UNSTUCK_CHAOS_DIR. */
  readonly output: string | undefined
  readonly ignoreData: boolean
  readonly keep: boolean
  /** The PostgreSQL server for scratch databases; null: SQLite files. */
  readonly server: string | null
  readonly progress: Progress
  /** Fires on Ctrl-C. */
  readonly interrupted: AbortSignal
}

/** Something that is wrong with the command or its result. */
export type Problem = {
  /** A stable name, for scripts. */
  readonly what: string
  /** A sentence. */
  readonly says: string
  readonly count: number
  /** The first few affected things. */
  readonly examples: readonly string[]
  /** What to do; null when there is no advice. */
  readonly hint: string | null
}
