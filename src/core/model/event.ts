import type { Verdict } from './verdict.ts'

/**
 * An event in a process, by `type`. Each is emitted once; the log, the journal and `onEvent` receive it. `run` and `target`
 * are ids, `key` is the key of the target.
 */
export type UnstuckEvent =
  | { type: 'worker_start'; source: string; pid: number; presence: string }
  /** A worker stopped. */
  | { type: 'worker_stop'; reason: string }
  /** A run started. */
  | { type: 'run_start'; run: string; source: string }
  /** All targets of a run are known. */
  | { type: 'run_planned'; run: string; targets: number }
  /** A run ended. */
  | { type: 'run_end'; run: string; status: string }
  /** A worker claimed a target; `page` is its last saved page. */
  | { type: 'target_start'; run: string; target: string; key: string; epoch: number; page: number }
  /** A page was saved. */
  | {
      type: 'page_complete'
      run: string
      target: string
      key: string
      page: number
      items: number
    }
  /** Characters that no database can store (NUL, lone surrogates) were replaced by U+FFFD. */
  | {
      type: 'text_replaced'
      run: string
      target: string
      key: string
      page: number
      count: number
    }
  /** The last page of a target was saved. */
  | { type: 'target_complete'; run: string; target: string; key: string; page: number }
  /** A page failed; `retryInMs` is null if the target failed for good. */
  | {
      type: 'target_error'
      run: string
      target: string
      key: string
      page: number
      error: string
      retryInMs: number | null
    }
  /** A worker released a target unfinished. */
  | { type: 'target_released'; run: string; target: string; key: string; page: number }
  /** Another worker has the target. */
  | { type: 'lease_lost'; run: string; target: string; key: string; because: string }
  /** The database accepted a heartbeat. */
  | { type: 'heartbeat'; claims: number; loopLagMs: number }
  /** A line that a command wrote over its API. */
  | {
      type: 'log'
      run: string
      target: string | null
      level: 'info' | 'warn' | 'error'
      message: string
      fields?: Readonly<Record<string, unknown>> | undefined
    }
  /** Recovery reached a verdict. */
  | { type: 'recovery'; verdict: Verdict }
  /** A run or target needs attention: only an operator can decide what happens to it. */
  | {
      type: 'alert'
      run: string
      /** As commands take the run or the target. */
      name: string
      target: string | null
      source: string
      because: string
      command: string
    }
  /** The database cannot be used now. */
  | { type: 'store_error'; message: string }
  /** The database can be used again. */
  | { type: 'store_recovered'; afterMs: number }

export type Emit = (event: UnstuckEvent) => void
