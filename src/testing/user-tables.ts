import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import pg from 'pg'
import type { AdoptedOptions } from '../features/adopted/mapping.ts'

/** Tables as people have made them by hand, in both engines: what Unstuck is to work on as they are. */

export type EngineName = 'sqlite' | 'postgres'

export type UserTable = {
  /** Its name there, in SQL. */
  readonly sql: Readonly<Record<EngineName, string>>
  readonly ddl: Readonly<Record<EngineName, string>>
  /** What its owner writes in the config. */
  readonly options: Readonly<Record<EngineName, AdoptedOptions>>
  /** How its owner's program writes a time; PostgreSQL takes a Date as it is. */
  readonly sqliteTime: (at: Date) => SQLInputValue
}

const isoTime = (at: Date): string => at.toISOString()
/** As SQLite's CURRENT_TIMESTAMP writes it. */
const plainTime = (at: Date): string => at.toISOString().slice(0, 19).replace('T', ' ')
const epochTime = (at: Date): number => at.getTime()

const CRAWL_RUNS: Omit<AdoptedOptions, 'table'> = {
  columns: {
    id: 'id',
    source: 'course_id',
    status: 'status',
    startedAt: 'started_at',
    finishedAt: 'finished_at',
    error: 'error',
    extracted: 'extracted_total',
    skipped: 'skipped_total',
  },
  statuses: {
    active: ['running'],
    succeeded: 'success',
    failed: 'failed',
    cancelled: 'cancelled',
    abandoned: 'Timeout - Auto-cleaned',
  },
}

/** In PostgreSQL in a schema of its own, with uuids and a time zone. No heartbeat, no owner. */
export const crawlRuns: UserTable = {
  sql: { sqlite: 'crawl_runs', postgres: 'course_crawler.crawl_runs' },
  ddl: {
    sqlite: /* sql */ `
      CREATE TABLE crawl_runs (
        id TEXT PRIMARY KEY, course_id TEXT NOT NULL, status TEXT NOT NULL DEFAULT 'running',
        started_at TEXT NOT NULL, finished_at TEXT, error TEXT,
        extracted_total INTEGER, skipped_total INTEGER, triggered_by TEXT NOT NULL DEFAULT 'cron'
      );
      CREATE INDEX crawl_runs_status ON crawl_runs (status);
    `,
    postgres: /* sql */ `
      CREATE SCHEMA course_crawler;
      CREATE TABLE course_crawler.crawl_runs (
        id uuid PRIMARY KEY DEFAULT gen_random_uuid(), course_id text NOT NULL,
        status text NOT NULL DEFAULT 'running', started_at timestamptz NOT NULL DEFAULT now(),
        finished_at timestamptz, error text, extracted_total integer, skipped_total integer,
        triggered_by text NOT NULL DEFAULT 'cron'
      );
      CREATE INDEX crawl_runs_status ON course_crawler.crawl_runs (status);
    `,
  },
  options: {
    sqlite: { table: 'crawl_runs', ...CRAWL_RUNS },
    postgres: { table: 'course_crawler.crawl_runs', ...CRAWL_RUNS },
  },
  sqliteTime: isoTime,
}

const RUNS: AdoptedOptions = {
  table: 'runs',
  columns: {
    id: 'id',
    source: 'portal_name',
    status: 'status',
    startedAt: 'started_at',
    finishedAt: 'completed_at',
    extracted: 'extracted_total_tenders',
    skipped: 'skipped_existing_total',
  },
  statuses: {
    active: 'running',
    interrupted: 'interrupted',
    succeeded: 'completed',
    failed: 'failed',
    cancelled: 'cancelled',
    abandoned: 'Timeout - Auto-cleaned',
  },
}

/** Integer ids, times without a zone, no column for an error. Checkpoints are files: give `options` a `checkpoint`. */
export const tenderRuns: UserTable = {
  sql: { sqlite: 'runs', postgres: 'runs' },
  ddl: {
    sqlite: /* sql */ `
      CREATE TABLE runs (
        id INTEGER PRIMARY KEY AUTOINCREMENT, portal_name TEXT NOT NULL, status TEXT NOT NULL,
        extracted_total_tenders INTEGER, skipped_existing_total INTEGER,
        started_at TEXT DEFAULT CURRENT_TIMESTAMP, completed_at TEXT, settings TEXT
      );
    `,
    postgres: /* sql */ `
      CREATE TABLE runs (
        id serial PRIMARY KEY, portal_name varchar(80) NOT NULL, status varchar(40) NOT NULL,
        extracted_total_tenders integer, skipped_existing_total integer,
        started_at timestamp DEFAULT (now() AT TIME ZONE 'UTC'), completed_at timestamp, settings jsonb
      );
    `,
  },
  options: { sqlite: RUNS, postgres: RUNS },
  sqliteTime: plainTime,
}

const QUALIFICATION_RUNS: AdoptedOptions = {
  table: 'qualification_runs',
  columns: {
    id: 'id',
    status: 'status',
    startedAt: 'createdAt',
    finishedAt: 'completedAt',
    error: 'errorMessage',
    done: 'completed',
    total: 'total',
  },
  statuses: {
    active: ['PROCESSING', 'PENDING'],
    succeeded: 'COMPLETED',
    failed: 'FAILED',
  },
}

/** As Prisma makes them: camelCase in quotes, an enum, times as milliseconds in SQLite. */
export const qualificationRuns: UserTable = {
  sql: { sqlite: 'qualification_runs', postgres: 'qualification_runs' },
  ddl: {
    sqlite: /* sql */ `
      CREATE TABLE qualification_runs (
        "id" TEXT PRIMARY KEY, "status" TEXT NOT NULL DEFAULT 'PENDING', "completed" INTEGER NOT NULL DEFAULT 0,
        "total" INTEGER NOT NULL DEFAULT 0, "createdAt" DATETIME NOT NULL, "completedAt" DATETIME,
        "errorMessage" TEXT, "results" TEXT
      );
    `,
    postgres: /* sql */ `
      CREATE TYPE "QualificationStatus" AS ENUM ('PENDING', 'PROCESSING', 'COMPLETED', 'FAILED');
      CREATE TABLE qualification_runs (
        "id" text PRIMARY KEY, "status" "QualificationStatus" NOT NULL DEFAULT 'PENDING',
        "completed" integer NOT NULL DEFAULT 0, "total" integer NOT NULL DEFAULT 0,
        "createdAt" timestamp(3) NOT NULL DEFAULT CURRENT_TIMESTAMP, "completedAt" timestamp(3),
        "errorMessage" text, "results" jsonb
      );
    `,
  },
  options: { sqlite: QUALIFICATION_RUNS, postgres: QUALIFICATION_RUNS },
  sqliteTime: epochTime,
}

const YP_TARGETS: AdoptedOptions = {
  table: 'yp_targets',
  kind: 'targets',
  columns: {
    id: 'id',
    status: 'status',
    key: 'slug',
    group: 'state',
    url: 'url',
    owner: 'claimed_by',
    startedAt: 'claimed_at',
    heartbeatAt: 'heartbeat_at',
    finishedAt: 'finished_at',
    error: 'last_error',
    page: 'page_current',
    pageTarget: 'page_target',
    attempts: 'attempts',
  },
  statuses: {
    planned: 'PLANNED',
    active: 'IN_PROGRESS',
    succeeded: 'DONE',
    stuck: 'STUCK',
    parked: 'PARKED',
    failed: 'FAILED',
  },
  policy: { heartbeat: '1m', lease: '60m' },
}

/** A table of targets: a row without a heartbeat for 60 minutes, or ever, is orphaned. */
export const ypTargets: UserTable = {
  sql: { sqlite: 'yp_targets', postgres: 'yp_targets' },
  ddl: {
    sqlite: /* sql */ `
      CREATE TABLE yp_targets (
        id INTEGER PRIMARY KEY, slug TEXT NOT NULL UNIQUE, state TEXT, url TEXT,
        status TEXT NOT NULL DEFAULT 'PLANNED', claimed_by TEXT, claimed_at TEXT, heartbeat_at TEXT,
        page_current INTEGER NOT NULL DEFAULT 0, page_target INTEGER, attempts INTEGER,
        last_error TEXT, finished_at TEXT, priority INTEGER NOT NULL DEFAULT 5
      );
      CREATE INDEX yp_targets_status ON yp_targets (status);
    `,
    postgres: /* sql */ `
      CREATE TABLE yp_targets (
        id bigserial PRIMARY KEY, slug text NOT NULL UNIQUE, state text, url text,
        status text NOT NULL DEFAULT 'PLANNED', claimed_by text, claimed_at timestamptz,
        heartbeat_at timestamptz, page_current integer NOT NULL DEFAULT 0, page_target integer,
        attempts integer, last_error text, finished_at timestamptz, priority integer NOT NULL DEFAULT 5
      );
      CREATE INDEX yp_targets_status ON yp_targets (status);
    `,
  },
  options: { sqlite: YP_TARGETS, postgres: YP_TARGETS },
  sqliteTime: isoTime,
}

/** The four of them. */
export const USER_TABLES = { crawlRuns, tenderRuns, qualificationRuns, ypTargets }

export function engineOf(url: string): EngineName {
  return url.startsWith('sqlite:') ? 'sqlite' : 'postgres'
}

/** Makes the table, as its owner once did. A SQLite file that is not there is made. */
export async function createUserTable(url: string, table: UserTable): Promise<void> {
  await runUserSql(url, table.ddl[engineOf(url)])
}

/** By the names of the columns; a Date is written as the owner's program would. */
export type NewRow = Readonly<Record<string, string | number | bigint | null | Date>>

/** Puts rows into it, as its owner's program would, all at once. */
export async function insertRows(
  url: string,
  table: UserTable,
  rows: readonly NewRow[],
): Promise<void> {
  const engine = engineOf(url)
  await withConnection(url, async (ask) => {
    await ask('BEGIN', [])
    for (const row of rows) {
      const columns = Object.keys(row).map((name) => `"${name}"`)
      const places = columns.map((_, at) => (engine === 'sqlite' ? `?${at + 1}` : `$${at + 1}`))
      await ask(
        `INSERT INTO ${table.sql[engine]} (${columns.join(', ')}) VALUES (${places.join(', ')})`,
        Object.values(row).map((value) => toColumnValue(value, engine, table)),
      )
    }
    await ask('COMMIT', [])
  })
}

function toColumnValue(value: NewRow[string], engine: EngineName, table: UserTable): SQLInputValue {
  if (!(value instanceof Date)) return value
  // Text, so that a column without a zone gets UTC whatever the zone of the machine is.
  return engine === 'sqlite' ? table.sqliteTime(value) : value.toISOString()
}

/** All of its rows, whole, in the order of their ids. */
export function readUserRows(url: string, table: UserTable): Promise<Record<string, unknown>[]> {
  return runUserSql(url, `SELECT * FROM ${table.sql[engineOf(url)]} ORDER BY id`)
}

/** A statement of the user's own, over a connection of its own. Without values it may be several. */
export function runUserSql(
  url: string,
  text: string,
  values?: readonly SQLInputValue[],
): Promise<Record<string, unknown>[]> {
  return withConnection(url, (ask) => ask(text, values))
}

type Query = (text: string, values?: readonly SQLInputValue[]) => Promise<Record<string, unknown>[]>

async function withConnection<T>(url: string, work: (ask: Query) => Promise<T>): Promise<T> {
  if (engineOf(url) === 'sqlite') {
    using db = new DatabaseSync(url.slice('sqlite:'.length), { timeout: 10_000 })
    return await work(async (text, values) => {
      if (values || /^\s*(SELECT|PRAGMA)/i.test(text)) {
        return db.prepare(text).all(...(values ?? []))
      }
      db.exec(text)
      return []
    })
  }
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return await work(async (text, values) => {
      const result = await client.query<Record<string, unknown>>(text, values && [...values])
      return result.rows ?? []
    })
  } finally {
    await client.end()
  }
}
