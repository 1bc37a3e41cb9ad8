import type { RunId, WorkerId } from './id.ts'
import type { Millis } from './time.ts'

/** One life of a run's command. A run that is taken up again has several. */
export type Execution = {
  /** A UUIDv7: the newest sorts last. */
  readonly id: string
  readonly run: RunId
  readonly worker: WorkerId
  readonly host: string
  readonly command: readonly string[]
  readonly outputDir: string
  readonly log: string
  readonly startedAt: Millis
  readonly end: ExecutionEnd | null
}

export type ExecutionEnd = {
  readonly at: Millis
  /** Null when a signal ended it, or it never started. */
  readonly exitCode: number | null
  readonly signal: string | null
  /** What ended it, in a sentence: its own exit, a stop, a limit, probably no memory. */
  readonly because: string
  /** Files in its output directory. */
  readonly artifacts: number
  /** Of the whole tree, in bytes, at its largest; null where the system does not tell. */
  readonly peakMemory: number | null
}
