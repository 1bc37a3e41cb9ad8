import { formatDuration } from '../../core/model/time.ts'
import { redact } from '../../core/model/redact.ts'
import type { Trial } from './trial.ts'

export const DEFAULT_TIMEOUT_MS = 600_000

type TrialOptions = Omit<Trial, 'progress' | 'interrupted'>

/** The command line that deals the same blows again, with the seed and the times that were chosen. Without secrets. */
export function replayCommand(trial: TrialOptions, withinMs: number | undefined): string {
  const within = trial.withinMs ?? withinMs
  const args = [
    ...flag('--kills', trial.kills?.toString()),
    ...flag('--for', trial.forMs === undefined ? undefined : formatDuration(trial.forMs)),
    ...flag('--signal', trial.signal === 'SIGKILL' ? undefined : trial.signal),
    ...flag('--whom', trial.whom === 'all' ? undefined : trial.whom),
    ...flag('--seed', String(trial.seed)),
    ...flag('--within', within === undefined ? undefined : formatDuration(within)),
    ...flag('--output', trial.output),
    ...(trial.ignoreData ? ['--ignore-data'] : []),
    ...flag(
      '--timeout',
      trial.timeoutMs === DEFAULT_TIMEOUT_MS ? undefined : formatDuration(trial.timeoutMs),
    ),
    ...flag('--db', trial.server === null ? undefined : redact(trial.server)),
    ...(trial.keep ? ['--keep'] : []),
    '--',
    ...trial.command.map(redact),
  ]
  return ['npx', 'unstuck', 'chaos', ...args.map(shellQuote)].join(' ')
}

function flag(name: string, value: string | undefined): string[] {
  return value === undefined ? [] : [name, value]
}

/** As a shell takes it for one word. */
function shellQuote(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}
