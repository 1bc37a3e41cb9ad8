import type { RunId, TargetId } from './id.ts'
import type { Verdict } from './verdict.ts'

/** Everything the runtime says, once; log, journal and (later) metrics and alerts listen. */
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
  /** Characters that no database can store, NUL and lone surrogates, became U+FFFD. */
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
      /** Null: it gave up. */
      retryInMs: number | null
    }
  | { type: 'target_released'; run: RunId; target: TargetId; key: string; page: number }
  | { type: 'lease_lost'; run: RunId; target: TargetId; key: string; because: string }
  | { type: 'heartbeat'; claims: number; loopLagMs: number }
  | { type: 'recovery'; verdict: Verdict }
  /** Something only a person can decide. */
  | {
      type: 'alert'
      run: RunId
      target: TargetId | null
      source: string
      because: string
      command: string
    }
  | { type: 'store_trouble'; message: string }
  | { type: 'store_back'; afterMs: number }

export type Emit = (event: UnstuckEvent) => void
