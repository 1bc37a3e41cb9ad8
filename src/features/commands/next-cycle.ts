import { humanizeDuration, type Millis } from '../../core/model/time.ts'

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
  if (untilTickMs !== null) return start(untilTickMs, 'the timetable says when', NO_RESTARTS)
  if (policy.intervalMs !== null) return start(policy.intervalMs, 'the next cycle', NO_RESTARTS)
  // A new run would start from the beginning and fail the same way.
  if (exit.outcome === 'parked') return { action: 'give-up', because: 'its run was parked' }
  if (policy.restart === 'always' && exit.outcome === 'succeeded')
    return start(policy.delayMs, 'it ended, and is to run always', NO_RESTARTS)
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
