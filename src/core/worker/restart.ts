/** What is known of a child process that has just ended. */
export type ChildExit = {
  /** Null when a signal ended it. */
  readonly code: number | null
  readonly uptimeMs: number
  /** Ends in a row before this one that came right after the start. */
  readonly quickExits: number
  /** It had begun to work. */
  readonly hasStarted: boolean
}

export type RestartDecision =
  | { readonly action: 'restart'; readonly afterMs: number; readonly quickExits: number }
  /** It did what it came for, or a stop was asked of it. */
  | { readonly action: 'leave' }
  /** Another copy would end the same way: wrong usage, wrong schema, a database that was lost. */
  | { readonly action: 'give-up'; readonly code: number }

const QUICK_EXIT_MS = 5_000
const IMMEDIATE_RESTARTS = 3
const BACKOFF_MS = 500
const BACKOFF_MAX_MS = 30_000
const CLEAN_CODES: readonly number[] = [0, 3, 75]
const NON_RETRYABLE_CODES: readonly number[] = [2, 9]
/** Before it has started the database may just be away; after that, only one that is lost ends a worker. */
const UNREACHABLE_CODE = 7

/** Whether a dead worker process is started again, and when. At once, unless it keeps dying right after its start. */
export function decideRestart(exit: ChildExit): RestartDecision {
  if (exit.code !== null && CLEAN_CODES.includes(exit.code)) return { action: 'leave' }
  if (exit.code !== null && NON_RETRYABLE_CODES.includes(exit.code))
    return { action: 'give-up', code: exit.code }
  if (exit.code === UNREACHABLE_CODE && exit.hasStarted)
    return { action: 'give-up', code: exit.code }
  const quickEnds = exit.uptimeMs < QUICK_EXIT_MS ? exit.quickExits + 1 : 0
  const over = quickEnds - IMMEDIATE_RESTARTS
  const afterMs = over <= 0 ? 0 : Math.min(BACKOFF_MS * 2 ** (over - 1), BACKOFF_MAX_MS)
  return { action: 'restart', afterMs, quickExits: quickEnds }
}
