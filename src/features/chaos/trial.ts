import { redact } from '../../core/model/redact.ts'
import { shellWord } from '../../lib/text/shell-command.ts'
import { formatDuration } from '../../core/model/time.ts'
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
  readonly message: string
  readonly count: number
  /** The first few affected things. */
  readonly examples: readonly string[]
  /** What to do; null when there is no advice. */
  readonly hint: string | null
}

/** Makes a problem that is there once. */
export function makeProblem(
  what: string,
  message: string,
  hint: string | null = null,
  examples: readonly string[] = [],
): Problem {
  return { what, message, count: 1, examples, hint }
}

export const DEFAULT_TIMEOUT_MS = 600_000

/** Returns the command line that injects the same faults again, with the chosen seed and times and without secrets. */
export function replayCommand(
  trial: Omit<Trial, 'progress' | 'interrupted'>,
  withinMs: number | undefined,
): string {
  const duration = (ms: number | undefined): string | undefined =>
    ms === undefined ? undefined : formatDuration(ms)
  const flags: Readonly<Record<string, string | undefined>> = {
    '--kills': trial.kills?.toString(),
    '--for': duration(trial.forMs),
    '--signal': trial.signal === 'SIGKILL' ? undefined : trial.signal,
    '--whom': trial.whom === 'all' ? undefined : trial.whom,
    '--seed': String(trial.seed),
    '--within': duration(trial.withinMs ?? withinMs),
    '--output': trial.output,
    '--timeout': trial.timeoutMs === DEFAULT_TIMEOUT_MS ? undefined : duration(trial.timeoutMs),
    '--db': trial.server === null ? undefined : redact(trial.server),
  }
  const args = Object.entries(flags).flatMap(([name, value]) => (value ? [name, value] : []))
  if (trial.ignoreData) args.push('--ignore-data')
  if (trial.keep) args.push('--keep')
  return [
    'npx unstuck chaos',
    ...[...args, '--', ...trial.command.map(redact)].map(shellWord),
  ].join(' ')
}
