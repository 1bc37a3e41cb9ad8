import type { RunId } from '../../../core/model/id.ts'
import type { Millis } from '../../../core/model/time.ts'
import { ACTIONS, RUN_STATUS_AFTER, TARGET_STATUS_AFTER } from '../../../core/model/verdict.ts'
import type { StoreExtension } from '../../../core/store/store.ts'

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

export type SampleFilter = {
  readonly since: Millis
  readonly until: Millis
  readonly run?: RunId | undefined
  readonly source?: string | undefined
  /** For a long period: only samples of every so many minutes, and the last of each run. */
  readonly everyMinutes?: number | undefined
}

export type RecoveryFilter = {
  readonly since: Millis
  readonly stepMs: number
  readonly run?: RunId | undefined
  readonly source?: string | undefined
}

export type AuditCount = {
  readonly source: string
  readonly action: string
  readonly count: number
  readonly lastAt: Millis
}

/** Reads for charts, paces and figures. The heartbeat threads take the samples and send the measurements. */
export interface MetricsStore {
  /** Returns samples by time. */
  samples(filter: SampleFilter): Promise<Sample[]>
  /** Returns how often recovery changed something, per step from `since` on. Steps without a change are omitted. */
  recoveriesPerStep(filter: RecoveryFilter): Promise<{ at: Millis; count: number }[]>
  /** Returns how often each action was applied, per source. */
  auditCounts(filter: {
    since?: Millis | undefined
    source?: string | undefined
  }): Promise<AuditCount[]>
  /** Returns the last `stats` of every worker that sent some. Those of workers that ended long ago are added up in one. */
  workerStats(): Promise<unknown[]>
}

export const METRICS_STORE: StoreExtension<MetricsStore> = {
  sqlite: async () => (await import('./sqlite.ts')).metricsMethods,
  postgres: async () => (await import('./postgres.ts')).metricsMethods,
}

export type SampleRow = Omit<Sample, 'run'> & { run_id: string }

export function toSample({ at, run_id, source, pages, items, done }: SampleRow): Sample {
  return { at, run: run_id, source, pages, items, done }
}

const MINUTE_MS = 60_000

/** Returns the starts of the minutes that are read of a long period; null if all are. */
export function sampledMinutes({ since, until, everyMinutes = 1 }: SampleFilter): number[] | null {
  if (everyMinutes <= 1) return null
  const step = everyMinutes * MINUTE_MS
  const first = Math.ceil(since / step) * step
  const count = Math.max(0, Math.floor((until - first) / step) + 1)
  return Array.from({ length: count }, (_, n) => first + n * step)
}

/** Of the actions that the trail knows, those by which recovery changes something. */
export const RECOVERY_ACTIONS = ACTIONS.filter(
  (action) => action in TARGET_STATUS_AFTER || action in RUN_STATUS_AFTER,
)
