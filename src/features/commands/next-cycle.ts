import { humanizeDuration, type Millis } from '../../core/model/time.ts'

/** When a command is started again. Lengths of time are in milliseconds. */
export type RestartPolicy = {
  readonly restart: 'always' | 'on-failure' | 'never'
  /** From the end of a cycle to the start of the next; null: there is no next by itself. */
  readonly intervalMs: number | null
  readonly delayMs: number
  /** How often within the window it is started again after a failure that brought no progress. */
  readonly max: number
  readonly windowMs: number
  /** Who lived this long starts with the first delay again. */
  readonly minUptimeMs: number
}

/** How a cycle of the command ended. */
export type CycleExit = {
  readonly outcome:
    | 'succeeded'
    | 'failed'
    /** Its run was set aside for a person: its command took it down again and again. */
    | 'parked'
    /** A person cancelled the run. */
    | 'cancelled'
    /** The program was not there or could not be executed: another try would end the same way. */
    | 'unstartable'
  readonly uptimeMs: number
  /** It saved a page, reported progress or wrote a file: not a crash loop, whatever its exit code. */
  readonly progressed: boolean
}

/** What is remembered from cycle to cycle. */
export type RestartHistory = {
  /** When it was started again after a failure without progress, on a clock that cannot be set. */
  readonly restarts: readonly Millis[]
  /** Failures in a row that came right after the start. */
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

/** Whether the command is started again, and when. `untilTickMs`: to the next time the timetable names, if there is one. */
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
  // A new run would begin from nothing, and go the same way.
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
  // It dies, but gains ground each time: worth going on with for ever.
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
