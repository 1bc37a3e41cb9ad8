import type { Alert } from '../model/alert.ts'
import type { Execution, ExecutionEnd } from '../model/execution.ts'
import type { RunId } from '../model/id.ts'

/** Methods that only one feature calls. */

export interface AlertStore {
  /** Returns open alerts, oldest first. */
  openAlerts(): Promise<Alert[]>
  /** Returns resolved alerts, the last resolved first. */
  recentAlerts(limit: number): Promise<Alert[]>
  /**
   * Opens the alert. Returns true if this call opened it. Of an open one it changes only `because`, and its owner if that
   * has not seen it for minutes.
   */
  raiseAlert(alert: NewAlert): Promise<boolean>
  /** Records that the destination got the message that the alerts are open (`sent`) or over (`ended`). */
  markDelivered(delivery: {
    causes: readonly string[]
    destination: string
    event: 'sent' | 'ended'
  }): Promise<void>
  /** Resolves the alert if it is open, has this owner and was not seen since it was read. Returns whether it did. */
  resolveAlert(alert: Pick<Alert, 'cause' | 'owner' | 'lastSeenAt'>): Promise<boolean>
}

export type NewAlert = Pick<
  Alert,
  'cause' | 'owner' | 'rule' | 'source' | 'run' | 'because' | 'command'
>

export interface CommandStore {
  startExecution(execution: Execution): Promise<void>
  endExecution(id: string, end: ExecutionEnd): Promise<void>
  /** Returns the executions of a run, newest first. */
  executions(run: RunId, limit: number): Promise<Execution[]>
}
