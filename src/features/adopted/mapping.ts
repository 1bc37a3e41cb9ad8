import type { Policy } from '../../core/model/policy.ts'
import type { PolicyOptions } from '../../lib/validate/policy-options.ts'

/** A row of an adopted table, by column name. */
export type UserRow = Readonly<Record<string, unknown>>

/** An adopted table, as in `adopted` of the config. */
export type AdoptedOptions = {
  /** `runs`, or with its schema: `course_crawler.crawl_runs`. */
  table: string
  /** `runs`: each row is a run. `targets`: each row is a target, and the whole table is one run. @default 'runs' */
  kind?: 'runs' | 'targets' | undefined
  /** The table's database. @default Unstuck's own */
  db?: string | undefined
  /** Its columns, by field. */
  columns: AdoptedColumns
  /** Its status values, by meaning. */
  statuses: AdoptedStatuses
  /** Returns the path of the checkpoint file. A run whose file is not empty can be continued. @default none */
  checkpoint?: ((row: UserRow) => string | null | undefined) | undefined
  /** Returns the path of the output folder. A file in it counts as progress. @default none */
  outputDir?: ((row: UserRow) => string | null | undefined) | undefined
  /** The folder with these files. Paths outside of it are not read. @default the folder of the config */
  filesIn?: string | undefined
  /** Returns whether a worker is alive; anything but true and false means unknown. @default unknown */
  alive?: ((row: UserRow) => unknown) | undefined
  /** Called after recovery put the row back in the queue, to start it again. @default nothing */
  onResume?: ((row: UserRow) => unknown) | undefined
  /** Whether an operator may delete an ended row by its id; needs the right DELETE. Only for runs. @default false */
  delete?: boolean | undefined
  /** For its rows. @default that of the config */
  policy?: PolicyOptions | undefined
  /** The time zone of times without one. @default 'UTC' */
  timeZone?: string | undefined
}

/** Columns that only tables of targets have. */
export const TARGET_FIELDS = ['key', 'group', 'url', 'page', 'pageTarget', 'attempts'] as const
/** Columns that hold a number. */
export const NUMBER_FIELDS = [
  'pid',
  'extracted',
  'skipped',
  'done',
  'total',
  'page',
  'pageTarget',
  'attempts',
] as const

/** Column names by field. Times may be timestamps, text, or numbers of seconds, milliseconds or microseconds. */
export type AdoptedColumns = {
  /** The key of the row. */
  id: string
  /** Its status. */
  status: string
  /** What the run is for; default: the table's name in the config. */
  source?: string | undefined
  /** When it was created: the age of a row that has not started. */
  createdAt?: string | undefined
  /** When it started. */
  startedAt?: string | undefined
  /** When it ended. */
  finishedAt?: string | undefined
  /** Why it failed. */
  error?: string | undefined
  /** Updated by the worker while it is alive. */
  heartbeatAt?: string | undefined
  /** When the work last progressed, unlike a heartbeat. */
  activityAt?: string | undefined
  /** The worker that has it. */
  owner?: string | undefined
  /** The host of the worker's process, as `hostname` prints it there. */
  host?: string | undefined
  /** The worker's process id on that host; needs `host`. Write it with the status and the start. */
  pid?: string | undefined
  /** Items saved. */
  extracted?: string | undefined
  /** Items left out. */
  skipped?: string | undefined
  /** Finished units of work. */
  done?: string | undefined
  /** All units of work. */
  total?: string | undefined
  /** A run with anything but null, '' and {} can be continued. */
  checkpoint?: string | undefined
  /** Only for targets: names it within the table. */
  key?: string | undefined
  /** Only for targets: its group. */
  group?: string | undefined
  /** Only for targets: its address. */
  url?: string | undefined
  /** Only for targets: the last finished page. */
  page?: string | undefined
  /** Only for targets: how many pages there will be. */
  pageTarget?: string | undefined
  /** Only for targets: how often it was tried. */
  attempts?: string | undefined
}

/** Text, or a whole number or a boolean where the column holds these. */
export type StatusValue = string | number | boolean

/**
 * The table's status values by meaning. Of several the first is written; case is ignored in comparisons. A row with an
 * unmapped value counts as ended, in a way that the value suggests. `succeeded` and `failed` may share a value if
 * `columns.error` is mapped: then a row with an error is failed.
 */
export type AdoptedStatuses = {
  /** In progress, according to the row. */
  active: StatusValue | readonly StatusValue[]
  /** Waits to be started. */
  queued?: StatusValue | readonly StatusValue[] | undefined
  /** Stopped with work left; waits to be continued. */
  interrupted?: StatusValue | readonly StatusValue[] | undefined
  /** Ended well; of a target: done. */
  succeeded?: StatusValue | readonly StatusValue[] | undefined
  /** Ended with an error. */
  failed?: StatusValue | readonly StatusValue[] | undefined
  /** Ended by an operator. */
  cancelled?: StatusValue | readonly StatusValue[] | undefined
  /** Ended because it was dead. */
  abandoned?: StatusValue | readonly StatusValue[] | undefined
  /** Only for targets: waits for a worker. */
  planned?: StatusValue | readonly StatusValue[] | undefined
  /** Only for targets: needs an operator. */
  stuck?: StatusValue | readonly StatusValue[] | undefined
  /** Only for targets: crashed its worker too often, or was parked by an operator. */
  parked?: StatusValue | readonly StatusValue[] | undefined
}

/** A mapped status value, as text. */
export type MappedValue = {
  readonly value: string
  /** If `succeeded` and `failed` share the value: whether rows with this status have an error. Null: it is not shared. */
  readonly hasError: boolean | null
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
  readonly statusValues: Readonly<Record<keyof AdoptedStatuses, readonly MappedValue[]>>
  readonly timeZone: string
  /** The config sets `timeZone`. */
  readonly hasExplicitTimeZone: boolean
  readonly policy: Policy
  /** Why rows cannot be deleted: the option that is off, or the right that is missing. Null: they can. */
  readonly deleteBlocked: string | null
} & Pick<AdoptedOptions, 'checkpoint' | 'outputDir' | 'filesIn' | 'alive' | 'onResume'>
