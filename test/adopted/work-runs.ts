import type { AdoptedOptions } from '../../src/features/adopted/mapping.ts'
import { qualificationRuns, type UserTable } from '../../src/testing/user-tables.ts'
import { minutesAgo, type TableFixture } from './test-context.ts'

/** A table of runs that beat. */
export const workRuns: UserTable = {
  sql: { sqlite: 'work_runs', postgres: 'work_runs' },
  ddl: {
    sqlite: `CREATE TABLE work_runs (id INTEGER PRIMARY KEY, status TEXT, owner TEXT, beat TEXT, ended TEXT, why TEXT, pages INTEGER)`,
    postgres: `CREATE TABLE work_runs (id int PRIMARY KEY, status text, owner text, beat timestamptz, ended timestamptz, why text, pages int)`,
  },
  options: { sqlite: workRunsOptions(), postgres: workRunsOptions() },
  sqliteTime: (at) => at.toISOString(),
}

export function workRunsOptions(): AdoptedOptions {
  return {
    table: 'work_runs',
    columns: {
      id: 'id',
      status: 'status',
      owner: 'owner',
      heartbeatAt: 'beat',
      finishedAt: 'ended',
      error: 'why',
      done: 'pages',
    },
    statuses: { active: 'busy', queued: 'waiting', failed: 'broken', succeeded: 'fine' },
    policy: { lease: '150ms', heartbeat: '50ms' },
  }
}

/** A row whose owner has not beaten for long. */
export const silentRow = { status: 'busy', owner: 'host-1', beat: minutesAgo(20), pages: 3 }

/** Policies that fail a row without a known owner, and one with an owner. */
export const stalePolicy = { staleAfterMs: 5 * 60_000, onStale: 'fail' as const }
export const oldTable: TableFixture = {
  table: qualificationRuns,
  rows: [{ id: 'old', status: 'PROCESSING', total: 1, createdAt: minutesAgo(10) }],
}
