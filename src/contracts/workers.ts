import type { WorkerId } from '../core/model/id.ts'
import type { Store } from '../core/store/store.ts'

/** The workers of `unstuck work`: one in this process, processes of a crawl, or copies of a command. */
export type Workers = {
  /** Null: the workers are in processes of their own. */
  readonly id: WorkerId | null
  readonly openStore: () => Promise<Store>
  readonly isHealthy: () => boolean
  readonly run: () => Promise<Ended>
  readonly stop: (because: string) => void
  readonly kill?: () => void
}

/** How the work ended. */
export type Ended = {
  readonly code: number
  /** Why it stopped; null: no work was left. */
  readonly stopped: string | null
}

/** What workers need of the process that they are in. */
export type WorkHost = {
  readonly id: WorkerId
  readonly log: (text: string) => void
  readonly onReady: () => void
  /** Call it with a store when the work begins. */
  readonly onBegin: (store: Store) => Promise<void>
  /** Ensures that the source has a run, unless none is to be started. Waits for the end of a pause in the background. */
  readonly ensureRun: (store: Store) => Promise<void>
  /** Fires when the work has ended. */
  readonly ended: AbortSignal
}
