import { humanizeDuration } from '../../core/model/time.ts'

/** Why Unstuck ended a command; null: it ended by itself. */
export type StopReason =
  /** Unstuck received SIGTERM or SIGINT. */
  | { readonly why: 'asked'; readonly by: string }
  | { readonly why: 'cancelled' }
  /** Another process has its run. */
  | { readonly why: 'lease-lost' }
  /** The watchdog died, and the command was ended with it. */
  | { readonly why: 'watchdog-lost' }
  | { readonly why: 'max-duration'; readonly limitMs: number }
  | { readonly why: 'max-memory'; readonly limit: number; readonly seen: number }
  | { readonly why: 'not-ready'; readonly limitMs: number }

export type CommandExit = {
  readonly exitCode: number | null
  readonly signal: string | null
  /** The kernel's count of out-of-memory kills rose while it ran. */
  readonly oomKills: number
  readonly stop: StopReason | null
  /** What the command reported over its API; null: nothing. */
  readonly reported: 'finished' | 'failed' | 'again' | null
}

export type ExitOutcome = {
  /**
   * What becomes of the run. `said`: the command settled it. `crash`: settled as any crash. `orphan`: its worker is dead,
   * and it is recovered like that of any worker.
   */
  readonly run: 'said' | 'succeed' | 'release' | 'cancelled' | 'lost' | 'crash' | 'orphan'
  /** The reason in the history. */
  readonly because: string
}

/** Returns what the end of a command means for its run. */
export function interpretExit(end: CommandExit): ExitOutcome {
  const how = describeExit(end)
  const { stop, reported } = end
  if (stop?.why === 'lease-lost')
    return { run: 'lost', because: `its run was taken over by another; ${how}` }
  if (reported === 'finished') return { run: 'said', because: `finished; ${how}` }
  if (reported === 'failed') return { run: 'said', because: `failed by its own word; ${how}` }
  if (reported === 'again') return { run: 'said', because: `asked to be started again; ${how}` }
  switch (stop?.why) {
    case 'cancelled':
      return { run: 'cancelled', because: `cancelled; ${how}` }
    case 'asked':
      return { run: 'release', because: `stopped by ${stop.by}; ${how}` }
    case 'watchdog-lost':
      return { run: 'orphan', because: 'its watchdog process died, and it was ended with it' }
    case 'max-duration':
      return {
        run: 'crash',
        because: `timeout: longer than ${humanizeDuration(stop.limitMs)}; ${how}`,
      }
    case 'max-memory':
      return {
        run: 'crash',
        because: `it used ${formatMegabytes(stop.seen)} of memory, more than ${formatMegabytes(stop.limit)}; ${how}`,
      }
    case 'not-ready':
      return { run: 'crash', because: `not ready within ${humanizeDuration(stop.limitMs)}; ${how}` }
    case undefined:
      return { run: end.exitCode === 0 ? 'succeed' : 'crash', because: how }
  }
}

function describeExit({ exitCode, signal, oomKills, stop }: CommandExit): string {
  if (signal === null) return exitCode === null ? 'it never started' : `exit code ${exitCode}`
  if (signal !== 'SIGKILL' || stop !== null) return `ended by ${signal}`
  return oomKills > 0
    ? 'killed (SIGKILL), probably for want of memory: the kernel killed processes for that meanwhile'
    : 'killed (SIGKILL) by someone else; the kernel counted no want of memory'
}

function formatMegabytes(bytes: number): string {
  return `${Math.round(bytes / 1_048_576)} MB`
}

const SIGNAL_BASE = 128

/** The exit code as shells report it. */
export function shellExitCode(
  { exitCode, signal }: Pick<CommandExit, 'exitCode' | 'signal'>,
  signals: Readonly<Record<string, number>>,
): number {
  if (exitCode !== null) return exitCode
  return signal === null ? 1 : SIGNAL_BASE + (signals[signal] ?? 0)
}
