import type { Policy, PolicyOptions } from '../../core/model/policy.ts'

/** A row of an adopted table, by column name. */
export type UserRow = Readonly<Record<string, unknown>>

/** An adopted table, as in `adopted` of the config. */
export type AdoptedOptions = {
  /** `runs`, or with its schema: `course_crawler.crawl_runs`. */
  table: string
  /** `runs`: each row is a run. `targets`: each row is a target, and the whole table is one run. */
  kind?: 'runs' | 'targets' | undefined
  /** The table's database; default: Unstuck's own. */
  db?: string | undefined
  columns: AdoptedColumns
  statuses: AdoptedStatuses
  /** Returns the path of the checkpoint file. A run whose file is not empty can be continued. */
  checkpoint?: ((row: UserRow) => string | null | undefined) | undefined
  /** Returns the path of the output folder. A file in it counts as progress. */
  outputDir?: ((row: UserRow) => string | null | undefined) | undefined
  /** The folder with these files; default: the folder of the config. Paths outside of it are not read. */
  filesIn?: string | undefined
  /** Returns whether a worker is alive; anything but true and false means unknown. */
  alive?: ((row: UserRow) => unknown) | undefined
  /** Called after recovery put the row back in the queue, to start it again. */
  onResume?: ((row: UserRow) => unknown) | undefined
  policy?: PolicyOptions | undefined
  /** The time zone of times without one; default: UTC. */
  timeZone?: string | undefined
}

/** Column names by field. Times may be timestamps, text, or numbers of seconds, milliseconds or microseconds. */
export type AdoptedColumns = {
  id: string
  status: string
  /** What the run is for; default: the table's name in the config. */
  source?: string | undefined
  startedAt?: string | undefined
  finishedAt?: string | undefined
  error?: string | undefined
  /** Updated by the worker while it is alive. */
  heartbeatAt?: string | undefined
  /** When the work last progressed, unlike a heartbeat. */
  activityAt?: string | undefined
  owner?: string | undefined
  extracted?: string | undefined
  skipped?: string | undefined
  done?: string | undefined
  total?: string | undefined
  /** A run with anything but null, '' and {} can be continued. */
  checkpoint?: string | undefined
  // Only for tables of targets:
  key?: string | undefined
  group?: string | undefined
  url?: string | undefined
  page?: string | undefined
  pageTarget?: string | undefined
  attempts?: string | undefined
}

/**
 * The table's status values by meaning. Of several the first is written; case is ignored in comparisons. A row with an
 * unmapped value counts as ended, in a way that the value suggests.
 */
export type AdoptedStatuses = {
  /** In progress, according to the row. */
  active: string | readonly string[]
  /** Waits to be started. */
  queued?: string | readonly string[] | undefined
  /** Stopped with work left; waits to be continued. */
  interrupted?: string | readonly string[] | undefined
  succeeded?: string | readonly string[] | undefined
  failed?: string | readonly string[] | undefined
  cancelled?: string | readonly string[] | undefined
  abandoned?: string | readonly string[] | undefined
  // Only for tables of targets, where `active` is in progress and `succeeded` is done:
  planned?: string | readonly string[] | undefined
  stuck?: string | readonly string[] | undefined
  parked?: string | readonly string[] | undefined
}

/** Validated options, before the database is read. */
export type Mapping = {
  /** The table's name in the config. */
  readonly name: string
  readonly kind: 'runs' | 'targets'
  /** Null: found by the search path (PostgreSQL), or none (SQLite). */
  readonly schema: string | null
  readonly table: string
  /** Null: Unstuck's own database. */
  readonly db: string | null
  readonly columns: AdoptedColumns
  /** Always lists. */
  readonly statusValues: Readonly<Record<keyof AdoptedStatuses, readonly string[]>>
  readonly timeZone: string
  /** The config sets `timeZone`. */
  readonly hasExplicitTimeZone: boolean
  readonly policy: Policy
} & Pick<AdoptedOptions, 'checkpoint' | 'outputDir' | 'filesIn' | 'alive' | 'onResume'>
