import type { ClaimId, RunId, TargetId, WorkerId } from '../model/id.ts'
import type { Millis } from '../model/time.ts'

export type Heartbeat = {
  readonly worker: WorkerId
  readonly claimIds: readonly ClaimId[]
  readonly loopLagMs: number
  /** What the worker has measured since it began, any JSON; kept when it has ended. Left out: as it was. */
  readonly stats?: unknown
}

export type HeartbeatResult = {
  /** Of the named claims, those that are still this worker's. */
  readonly held: readonly ClaimId[]
  /** Of these, those whose run was cancelled: stop at the page's end. */
  readonly cancelled: readonly ClaimId[]
  /** Targets that were parked for the crash of a worker that lives: their crash is struck off, they are to be put back. */
  readonly unpark: readonly { readonly run: RunId; readonly target: TargetId }[]
  /** When the database server started; null for an engine without one. */
  readonly serverStartedAt: Millis | null
  readonly now: Millis
  /** The schema has moved on beyond this program: drain and end. */
  readonly isOutdated: boolean
  /** What is wrong with the database although it works; left out while nothing is. */
  readonly warning?: string
}
