import type { RunId } from './id.ts'
import type { Millis } from './time.ts'

/** The progress of a run at one moment. Counts only grow, so the pace follows from two samples. */
export type Sample = {
  readonly at: Millis
  readonly run: RunId
  readonly source: string
  readonly pages: number
  /** New and updated ones. */
  readonly items: number
  /** Targets; for a run with one target what it reported. */
  readonly done: number
}
