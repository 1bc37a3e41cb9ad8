import type { Policy, PolicyOptions } from '../../core/model/policy.ts'

/** A row of the user's own table: by the names of its columns. */
export type UserRow = Readonly<Record<string, unknown>>

/** A table of the user's own, as they write it in `adopted` of the config. */
export type AdoptedOptions = {
  /** `runs`, or with its schema: `course_crawler.crawl_runs`. */
  table: string
  /** `runs`: each row is a run. `targets`: each row is a target, and the whole table is one run. */
  kind?: 'runs' | 'targets' | undefined
  /** Where the table is; left out: in Unstuck's own database. */
  db?: string | undefined
  columns: AdoptedColumns
  statuses: AdoptedStatuses
  /** A file with data in it (an empty one is none): then there is something to go on from. */
  checkpoint?: ((row: UserRow) => string | null | undefined) | undefined
  /** A file in this folder is progress. */
  outputDir?: ((row: UserRow) => string | null | undefined) | undefined
  /** The folder that these files and folders are in; left out: that of the config. What leads out of it is not read. */
  filesIn?: string | undefined
  /** Whether somebody works on it; anything but true and false: it is not known. */
  alive?: ((row: UserRow) => unknown) | undefined
  /** Starts it again, after its row was put back in line. */
  onResume?: ((row: UserRow) => unknown) | undefined
  policy?: PolicyOptions | undefined
  /** Of times without a zone; left out: UTC. */
  timeZone?: string | undefined
}

/** The names of the user's columns. Those of times may be timestamps, text, or numbers of seconds or milliseconds. */
export type AdoptedColumns = {
  id: string
  status: string
  /** What is crawled; left out: the table's name in the config. */
  source?: string | undefined
  startedAt?: string | undefined
  finishedAt?: string | undefined
  error?: string | undefined
  /** Beaten for as long as somebody works on it. */
  heartbeatAt?: string | undefined
  /** When anything of it last changed: moves with the work, unlike a heartbeat. */
  activityAt?: string | undefined
  owner?: string | undefined
  extracted?: string | undefined
  skipped?: string | undefined
  done?: string | undefined
  total?: string | undefined
  /** Anything but null, '' and {} is something to go on from. */
  checkpoint?: string | undefined
  // Of a table of targets:
  key?: string | undefined
  group?: string | undefined
  url?: string | undefined
  page?: string | undefined
  pageTarget?: string | undefined
  attempts?: string | undefined
}

/**
 * The user's words. The first of several is the one that is written; words are compared without regard to case. What
 * is not named here has ended, in a way that its word suggests.
 */
export type AdoptedStatuses = {
  /** At work, as far as the row says. */
  active: string | readonly string[]
  /** Waits for its turn. */
  queued?: string | readonly string[] | undefined
  /** Stopped with work left: waits to be taken up again. */
  interrupted?: string | readonly string[] | undefined
  succeeded?: string | readonly string[] | undefined
  failed?: string | readonly string[] | undefined
  cancelled?: string | readonly string[] | undefined
  abandoned?: string | readonly string[] | undefined
  // Of a table of targets, where `active` is in progress and `succeeded` is done:
  planned?: string | readonly string[] | undefined
  stuck?: string | readonly string[] | undefined
  parked?: string | readonly string[] | undefined
}

/** The same, found correct as far as it can be without a look at the database. */
export type Mapping = {
  /** In the config. */
  readonly name: string
  readonly kind: 'runs' | 'targets'
  /** Null: the search path decides (PostgreSQL), or there is none (SQLite). */
  readonly schema: string | null
  readonly table: string
  /** Null: in Unstuck's own database. */
  readonly db: string | null
  readonly columns: AdoptedColumns
  /** Each a list, as written by the user. */
  readonly statusValues: Readonly<Record<keyof AdoptedStatuses, readonly string[]>>
  readonly timeZone: string
  /** The user named it; else it is assumed. */
  readonly hasExplicitTimeZone: boolean
  readonly policy: Policy
} & Pick<AdoptedOptions, 'checkpoint' | 'outputDir' | 'filesIn' | 'alive' | 'onResume'>
