import { humanizeDuration, type Millis } from '../../core/model/time.ts'
import type { ManagedProcessExit } from './watchdog.ts'

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

export type CommandExit = Pick<
  ManagedProcessExit,
  'exitCode' | 'signal' | 'oomKills' | 'errorLine'
> & {
  readonly stop: StopReason | null
  /** What the command reported over its API; null: nothing. */
  readonly reported: 'finished' | 'failed' | 'again' | null
}

export type ExitOutcome = {
  /**
   * What becomes of the run. `settled`: the command settled it itself. `crash`: settled as any crash. `killed`: a crash that
   * another process caused. `orphan`: its worker is dead, and it is recovered like that of any worker.
   */
  readonly run:
    | 'settled'
    | 'succeed'
    | 'release'
    | 'cancelled'
    | 'lost'
    | 'crash'
    | 'killed'
    | 'orphan'
  /** The reason in the history. */
  readonly because: string
}

/** Returns what the end of a command means for its run. */
export function interpretExit(end: CommandExit): ExitOutcome {
  const how = describeExit(end)
  const { stop, reported } = end
  if (stop?.why === 'lease-lost')
    return { run: 'lost', because: `its run was taken over by another; ${how}` }
  if (reported === 'finished') return { run: 'settled', because: `finished; ${how}` }
  if (reported === 'failed') return { run: 'settled', because: `reported a failure; ${how}` }
  if (reported === 'again')
    return { run: 'settled', because: `requested to be started again; ${how}` }
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
      if (end.exitCode === 0) return { run: 'succeed', because: how }
      if (isKilled(end)) return { run: 'killed', because: how }
      return { run: 'crash', because: end.errorLine === null ? how : `${how}: ${end.errorLine}` }
  }
}

function describeExit({ exitCode, signal, oomKills, stop }: CommandExit): string {
  if (signal === null) return exitCode === null ? 'it never started' : `exit code ${exitCode}`
  if (signal !== 'SIGKILL' || stop !== null) return `ended by ${signal}`
  return oomKills > 0
    ? 'killed (SIGKILL), probably out of memory: the kernel killed processes for that meanwhile'
    : 'killed (SIGKILL) by another process: the kernel reported no lack of memory'
}

/** Signals by which a program ends itself, after a message on stderr. */
const FAULTS = ['SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGILL', 'SIGPIPE', 'SIGSEGV', 'SIGSYS', 'SIGTRAP']

/** Another process or the kernel ended it: what it printed before is not the reason. */
function isKilled({ signal }: CommandExit): boolean {
  return signal !== null && !FAULTS.includes(signal)
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

/** When a command is restarted. Times are in milliseconds. */
export type RestartPolicy = {
  readonly restart: 'always' | 'on-failure' | 'never'
  /** From the end of a cycle to the start of the next; null: no next cycle. */
  readonly intervalMs: number | null
  readonly delayMs: number
  /** The number of restarts within the window after failures without progress. */
  readonly max: number
  readonly windowMs: number
  /** After a cycle of this length the delay starts over. */
  readonly minUptimeMs: number
}

/** The result of a cycle. */
export type CycleExit = {
  readonly outcome:
    | 'succeeded'
    | 'failed'
    /** The run was parked: its command crashed it too often. */
    | 'parked'
    /** The run was cancelled. */
    | 'cancelled'
    /** The program does not exist or cannot be executed: another try would fail too. */
    | 'unstartable'
  readonly uptimeMs: number
  /** It saved a page, reported progress or wrote a file: no crash loop, whatever its exit code. */
  readonly progressed: boolean
}

/** The state kept between cycles. */
export type RestartHistory = {
  /** The times of restarts after a failure without progress, by the monotonic clock. */
  readonly restarts: readonly Millis[]
  /** Consecutive failures right after the start. */
  readonly quickExits: number
}

export const NO_RESTARTS: RestartHistory = { restarts: [], quickExits: 0 }

export type NextCycle =
  | {
      readonly action: 'start'
      readonly inMs: number
      readonly because: string
      readonly history: RestartHistory
    }
  | { readonly action: 'end' }
  | { readonly action: 'give-up'; readonly because: string }

const DELAY_MAX_MS = 5 * 60_000

/** Decides whether and when the command is restarted. `untilTickMs`: time to the next entry of the schedule, if any. */
export function decideNextCycle(
  policy: RestartPolicy,
  exit: CycleExit,
  history: RestartHistory,
  now: Millis,
  untilTickMs: number | null,
): NextCycle {
  if (exit.outcome === 'unstartable') return { action: 'end' }
  const isRestarted = exit.outcome === 'failed' && policy.restart !== 'never'
  if (isRestarted) return afterFailure(policy, exit, history, now)
  if (untilTickMs !== null) return start(untilTickMs, 'the next time of the schedule', NO_RESTARTS)
  if (policy.intervalMs !== null) return start(policy.intervalMs, 'the next cycle', NO_RESTARTS)
  // A new run would start from the beginning and fail the same way.
  if (exit.outcome === 'parked') return { action: 'give-up', because: 'its run was parked' }
  if (policy.restart === 'always' && exit.outcome === 'succeeded')
    return start(policy.delayMs, 'it is always restarted', NO_RESTARTS)
  return { action: 'end' }
}

function afterFailure(
  policy: RestartPolicy,
  exit: CycleExit,
  history: RestartHistory,
  now: Millis,
): NextCycle {
  // It crashes but makes progress each time, so it is restarted without limit.
  if (exit.progressed) return start(policy.delayMs, 'it made progress', NO_RESTARTS)
  const restarts = history.restarts.filter((at) => at > now - policy.windowMs)
  if (restarts.length >= policy.max) {
    const within = humanizeDuration(policy.windowMs)
    const times = policy.max === 1 ? 'once' : `${policy.max} times`
    return {
      action: 'give-up',
      because: `started again ${times} within ${within} and failed each time without progress`,
    }
  }
  const quickEnds = exit.uptimeMs < policy.minUptimeMs ? history.quickExits + 1 : 0
  const backoff = Math.max(
    policy.delayMs,
    Math.min(policy.delayMs * 2 ** (quickEnds - 1), DELAY_MAX_MS),
  )
  const nth = `restart ${restarts.length + 1} of ${policy.max} within ${humanizeDuration(policy.windowMs)}`
  return start(backoff, nth, { restarts: [...restarts, now + backoff], quickExits: quickEnds })
}

function start(inMs: number, because: string, history: RestartHistory): NextCycle {
  return { action: 'start', inMs, because, history }
}
