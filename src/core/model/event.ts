import type { RunId, TargetId } from './id.ts'
import type { Verdict } from './verdict.ts'

/** Events of a process, each emitted once. The log, the journal and `onEvent` receive them. */
export type UnstuckEvent =
  | { type: 'worker_start'; source: string; pid: number; presence: string }
  | { type: 'worker_stop'; reason: string }
  | { type: 'run_start'; run: RunId; source: string }
  | { type: 'run_planned'; run: RunId; targets: number }
  | { type: 'run_end'; run: RunId; status: string }
  | { type: 'target_start'; run: RunId; target: TargetId; key: string; epoch: number; page: number }
  | {
      type: 'page_complete'
      run: RunId
      target: TargetId
      key: string
      page: number
      items: number
    }
  /** Characters that no database can store (NUL, lone surrogates) were replaced by U+FFFD. */
  | {
      type: 'text_replaced'
      run: RunId
      target: TargetId
      key: string
      page: number
      count: number
    }
  | { type: 'target_complete'; run: RunId; target: TargetId; key: string; page: number }
  | {
      type: 'target_error'
      run: RunId
      target: TargetId
      key: string
      page: number
      error: string
      /** Null: the target failed for good. */
      retryInMs: number | null
    }
  | { type: 'target_released'; run: RunId; target: TargetId; key: string; page: number }
  | { type: 'lease_lost'; run: RunId; target: TargetId; key: string; because: string }
  | { type: 'heartbeat'; claims: number; loopLagMs: number }
  | { type: 'recovery'; verdict: Verdict }
  /** A run or target needs attention: only an operator can decide what happens to it. */
  | {
      type: 'alert'
      run: RunId
      target: TargetId | null
      source: string
      because: string
      command: string
    }
  | { type: 'store_error'; message: string }
  | { type: 'store_recovered'; afterMs: number }

export type Emit = (event: UnstuckEvent) => void
