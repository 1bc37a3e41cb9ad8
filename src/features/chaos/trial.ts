import { redact } from '../../core/model/redact.ts'
import { defaultsTo, option, SHARED_OPTIONS, type OptionValues } from '../../contracts/options.ts'
import { shellWord, unstuckCommand } from '../../core/model/shell-command.ts'
import { formatDuration } from '../../core/model/time.ts'
import { KILL_TARGETS } from './process-run.ts'
import type { Progress } from './progress.ts'
import { SIGNALS } from './schedule.ts'

const DEFAULT_TIMEOUT_MS = 600_000
export const DEFAULT_KILLS = 10

/** The options of the command: how to test it. */
export const trialOptions = {
  kills: defaultsTo('10', SHARED_OPTIONS.kills(undefined, 1)),
  duration: option.duration(
    'TIME',
    'no kills after this time; without --kills as many as fit',
    undefined,
  ),
  // All of them in place of the value would make every line of the help too long.
  signal: {
    ...option.choice(
      [...SIGNALS, 'mix'],
      `the signal: ${SIGNALS.join(', ')} (stopped beside a second copy until its lease has expired, then continued), or mix (random SIGKILL, SIGTERM and SIGINT)`,
      'SIGKILL',
    ),
    value: 'SIGNAL',
  },
  whom: option.choice(
    KILL_TARGETS,
    'which processes get it: all of the command, only the started one, or a random one',
    'all',
  ),
  seed: SHARED_OPTIONS.seed,
  within: defaultsTo(
    'such that all kills fit into the work',
    option.duration('TIME', 'longest time from its first saved page to the kill', undefined),
  ),
  output: option.text(
    'FILE',
    'a file that the command writes into the folder $UNSTUCK_CHAOS_DIR: one key per line, or JSON with a key, url or id. A repeated key is doubled, a missing one lost',
  ),
  ignoreData: option.flag('compare the keys of items and not their data: for sites that change'),
  maxDuration: SHARED_OPTIONS.maxDuration(DEFAULT_TIMEOUT_MS),
  keep: option.flag('keep databases, files and logs also after a success'),
}

/** The command to test, and how. Times are limited to the longest that a timer can wait. */
export type Trial = OptionValues<typeof trialOptions> & {
  readonly command: readonly string[]
  readonly seed: number
  /** Null: as many as fit into `duration`. */
  readonly killsAsked: number | null
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

/** Returns the command line that injects the same faults again, with the chosen seed and times and without secrets. */
export function replayCommand(
  trial: Omit<Trial, 'progress' | 'interrupted' | 'killsAsked'>,
  withinMs: number | undefined,
): string {
  const { kills, seed, signal, whom, output, ignoreData, keep } = trial
  const duration = (ms: number | undefined): string | undefined =>
    ms === undefined ? undefined : formatDuration(ms)
  const flags = {
    kills,
    duration: duration(trial.duration),
    signal: signal === 'SIGKILL' ? undefined : signal,
    whom: whom === 'all' ? undefined : whom,
    seed,
    within: duration(trial.within ?? withinMs),
    output,
    maxDuration: trial.maxDuration === DEFAULT_TIMEOUT_MS ? undefined : duration(trial.maxDuration),
    db: trial.server === null ? undefined : redact(trial.server),
    ignoreData,
    keep,
  }
  const command = trial.command.map((word) => shellWord(redact(word)))
  return [`npx ${unstuckCommand('chaos', [], flags)}`, '--', ...command].join(' ')
}
