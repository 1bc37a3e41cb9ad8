/** What is known of a child process that has just ended. */
export type ChildEnd = {
  /** Null when a signal ended it. */
  readonly code: number | null
  readonly uptimeMs: number
  /** Ends in a row before this one that came right after the start. */
  readonly quickEnds: number
  /** It had begun to work. */
  readonly hasStarted: boolean
}

export type RestartDecision =
  | { readonly action: 'restart'; readonly afterMs: number; readonly quickEnds: number }
  /** It did what it came for, or a stop was asked of it. */
  | { readonly action: 'leave' }
  /** Another copy would end the same way: wrong usage, wrong schema, a database that was lost. */
  | { readonly action: 'give-up'; readonly code: number }

const QUICK_MS = 5_000
const FREE_RESTARTS = 3
const BACKOFF_MS = 500
const BACKOFF_MAX_MS = 30_000
const CLEAN_CODES: readonly number[] = [0, 3, 75]
const HOPELESS_CODES: readonly number[] = [2, 9]
/** Before it has started the database may just be away; after that, only one that is lost ends a worker. */
const UNREACHABLE_CODE = 7

/** Whether a dead worker process is started again, and when. At once, unless it keeps dying right after its start. */
export function decideRestart(end: ChildEnd): RestartDecision {
  if (end.code !== null && CLEAN_CODES.includes(end.code)) return { action: 'leave' }
  if (end.code !== null && HOPELESS_CODES.includes(end.code))
    return { action: 'give-up', code: end.code }
  if (end.code === UNREACHABLE_CODE && end.hasStarted) return { action: 'give-up', code: end.code }
  const quickEnds = end.uptimeMs < QUICK_MS ? end.quickEnds + 1 : 0
  const over = quickEnds - FREE_RESTARTS
  const afterMs = over <= 0 ? 0 : Math.min(BACKOFF_MS * 2 ** (over - 1), BACKOFF_MAX_MS)
  return { action: 'restart', afterMs, quickEnds }
}
