import { inWords, type Millis } from '../../core/model/time.ts'

/** When a command is started again. Lengths of time are in milliseconds. */
export type Restarts = {
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
export type CycleEnd = {
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
export type Trail = {
  /** When it was started again after a failure without progress, on a clock that cannot be set. */
  readonly restarts: readonly Millis[]
  /** Failures in a row that came right after the start. */
  readonly quickEnds: number
}

export const NO_TRAIL: Trail = { restarts: [], quickEnds: 0 }

export type NextCycle =
  | {
      readonly action: 'start'
      readonly inMs: number
      readonly because: string
      readonly trail: Trail
    }
  | { readonly action: 'end' }
  | { readonly action: 'give-up'; readonly because: string }

const DELAY_MAX_MS = 5 * 60_000

/** Whether the command is started again, and when. `untilTickMs`: to the next time the timetable names, if there is one. */
export function decideNextCycle(
  plan: Restarts,
  end: CycleEnd,
  trail: Trail,
  now: Millis,
  untilTickMs: number | null,
): NextCycle {
  if (end.outcome === 'unstartable') return { action: 'end' }
  const isRestarted = end.outcome === 'failed' && plan.restart !== 'never'
  if (isRestarted) return afterFailure(plan, end, trail, now)
  if (untilTickMs !== null) return start(untilTickMs, 'the timetable says when', NO_TRAIL)
  if (plan.intervalMs !== null) return start(plan.intervalMs, 'the next cycle', NO_TRAIL)
  // A new run would begin from nothing, and go the same way.
  if (end.outcome === 'parked') return { action: 'give-up', because: 'its run was parked' }
  if (plan.restart === 'always' && end.outcome === 'succeeded')
    return start(plan.delayMs, 'it ended, and is to run always', NO_TRAIL)
  return { action: 'end' }
}

function afterFailure(plan: Restarts, end: CycleEnd, trail: Trail, now: Millis): NextCycle {
  // It dies, but gains ground each time: worth going on with for ever.
  if (end.progressed) return start(plan.delayMs, 'it made progress', NO_TRAIL)
  const restarts = trail.restarts.filter((at) => at > now - plan.windowMs)
  if (restarts.length >= plan.max) {
    const within = inWords(plan.windowMs)
    const times = plan.max === 1 ? 'once' : `${plan.max} times`
    return {
      action: 'give-up',
      because: `started again ${times} within ${within} and failed each time without progress`,
    }
  }
  const quickEnds = end.uptimeMs < plan.minUptimeMs ? trail.quickEnds + 1 : 0
  const backoff = Math.max(
    plan.delayMs,
    Math.min(plan.delayMs * 2 ** (quickEnds - 1), DELAY_MAX_MS),
  )
  const nth = `restart ${restarts.length + 1} of ${plan.max} within ${inWords(plan.windowMs)}`
  return start(backoff, nth, { restarts: [...restarts, now + backoff], quickEnds })
}

function start(inMs: number, because: string, trail: Trail): NextCycle {
  return { action: 'start', inMs, because, trail }
}
