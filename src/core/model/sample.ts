import type { RunId } from './id.ts'
import type { Millis } from './time.ts'

/** How far a run had come at one moment. All counts only grow, so two samples tell the pace between them. */
export type Sample = {
  readonly at: Millis
  readonly run: RunId
  readonly source: string
  readonly pages: number
  /** New and updated ones. */
  readonly items: number
  /** Targets; for a run with one target what it reported of itself. */
  readonly done: number
}
