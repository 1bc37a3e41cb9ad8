import { hostname } from 'node:os'
import type { AdoptedOptions } from '../../src/features/adopted/mapping.ts'
import {
  qualificationRuns,
  tenderRuns,
  ypTargets,
  type NewRow,
  type UserTable,
} from '../../src/testing/user-tables.ts'
import { enqueueCrawl } from '../../src/testing/fixtures.ts'
import { ago, HOUR, MINUTE, type Situations } from './situation.ts'

const tenders = (...rows: (() => NewRow)[]) => ({
  tenders: { table: tenderRuns, rows: () => rows.map((row) => row()) },
})

const tender =
  (minutesOld: number, row: NewRow = {}) =>
  (): NewRow => ({
    portal_name: 'portal',
    status: 'running',
    started_at: ago(minutesOld * MINUTE),
    ...row,
  })

/** A job queue as a Rails or Django program makes it: its states are whole numbers, and it records the process. */
const JOBS: AdoptedOptions = {
  table: 'jobs',
  columns: {
    id: 'id',
    source: 'portal',
    status: 'state',
    host: 'host',
    pid: 'pid',
    createdAt: 'created_at',
    startedAt: 'started_at',
    error: 'error',
  },
  statuses: { queued: 0, active: 1, succeeded: 2, failed: 3 },
}
const JOBS_DDL = /* sql */ `
  CREATE TABLE jobs (
    id integer PRIMARY KEY, portal varchar(80) NOT NULL, state integer NOT NULL DEFAULT 0, host varchar(80),
    pid integer, created_at timestamp NOT NULL, started_at timestamp, error text
  )
`
const jobTable: UserTable = {
  sql: { sqlite: 'jobs', postgres: 'jobs' },
  ddl: { sqlite: JOBS_DDL, postgres: JOBS_DDL },
  options: { sqlite: JOBS, postgres: JOBS },
  sqliteTime: (at) => at.toISOString(),
}

const job = (state: number, row: NewRow = {}): NewRow => {
  const begun = { started_at: ago(0), host: hostname() }
  return { id: 1, portal: 'portal', state, created_at: ago(2 * HOUR), ...(state && begun), ...row }
}

const jobs = (...rows: (() => NewRow)[]) => ({
  jobs: { table: jobTable, rows: () => rows.map((row, n) => ({ ...row(), id: n + 1 })) },
})

const GONE = 4_194_297

/** Tables of the user's own in which each row is a run. */
export const ADOPTED: Situations = {
  'an adopted row without a known owner': {
    severity: 'ok',
    health: { portal: 'healthy' },
    check: { portal: 'wait' },
    tables: tenders(tender(10)),
    arrange: async () => {},
  },
  'an adopted row that the preset fails': {
    severity: 'stuck',
    health: { portal: 'orphaned' },
    check: { portal: 'clean' },
    verdicts: ['fail portal'],
    alerts: ['silent'],
    attention: { 'portal: orphaned': 'unstuck recover' },
    config: `preset: 'production'`,
    tables: tenders(tender(40)),
    arrange: async () => {},
  },
  'an adopted row kept by onStale': {
    severity: 'attention',
    health: { portal: 'unknown' },
    check: { portal: 'start' },
    attention: { 'portal: unknown': 'unstuck explain tenders:1' },
    config: `policies: { portal: { staleAfter: '30m', onStale: 'keep' } }`,
    tables: tenders(tender(40)),
    arrange: async () => {},
  },
  'an adopted row without progress that is dead by age': {
    severity: 'stuck',
    health: { qualifications: 'dead' },
    check: { qualifications: 'clean' },
    verdicts: ['abandon qualifications'],
    alerts: ['dead'],
    attention: { 'qualifications: dead': 'unstuck clean qualifications:q1' },
    tables: {
      qualifications: {
        table: qualificationRuns,
        rows: () => [{ id: 'q1', status: 'PROCESSING', createdAt: ago(25 * HOUR) }],
      },
    },
    arrange: async () => {},
  },
  'an adopted row whose last heartbeat is older than its database is up': {
    severity: 'attention',
    health: { targets: 'unknown' },
    check: { targets: 'wait' },
    attention: { 'targets: unknown': 'unstuck explain ID' },
    only: 'postgres',
    config: `policies: { targets: { lease: '24h' } }`,
    tables: {
      targets: {
        table: ypTargets,
        rows: () => [
          {
            slug: 'austin',
            status: 'IN_PROGRESS',
            claimed_at: ago(28 * HOUR),
            heartbeat_at: ago(27 * HOUR),
          },
        ],
      },
    },
    arrange: async () => {},
  },
  'an adopted table that cannot be read': {
    severity: 'attention',
    health: { shop: 'waiting' },
    check: { shop: 'start' },
    attention: { 'tenders: the table cannot be read': 'unstuck doctor' },
    config: `adopted: { tenders: { table: 'gone', columns: { id: 'id', status: 'status', startedAt: 'started_at' }, statuses: { active: 'running', succeeded: 'ok', failed: 'failed' } } }`,
    arrange: (the) => enqueueCrawl(the.store, 2),
  },
  'an adopted row under a preset that fails it before it is dead by age': {
    severity: 'ok',
    health: { portal: 'healthy' },
    check: { portal: 'wait' },
    unsaid: /dead after|24 h/,
    config: `preset: 'production'`,
    tables: tenders(tender(10)),
    arrange: async () => {},
  },
  'an adopted row with progress, idle for 5 h': {
    severity: 'ok',
    health: { portal: 'healthy' },
    check: { portal: 'wait' },
    tables: tenders(tender(300, { extracted_total_tenders: 40 })),
    arrange: async () => {},
  },
  'an adopted row that reports how far it is, idle for 5 h': {
    severity: 'ok',
    health: { qualifications: 'healthy' },
    check: { qualifications: 'wait' },
    tables: {
      qualifications: {
        table: qualificationRuns,
        rows: () => [
          { id: 'q1', status: 'PROCESSING', createdAt: ago(5 * HOUR), completed: 3, total: 10 },
        ],
      },
    },
    arrange: async () => {},
  },
  'an adopted row with progress, idle for 30 h': {
    severity: 'stuck',
    health: { portal: 'orphaned' },
    check: { portal: 'resume' },
    alerts: ['silent'],
    attention: { 'portal: orphaned': 'unstuck explain tenders:1' },
    tables: tenders(tender(30 * 60, { extracted_total_tenders: 40 })),
    arrange: async () => {},
  },
  'an adopted row without progress that is a day old': {
    severity: 'stuck',
    health: { portal: 'dead' },
    check: { portal: 'clean' },
    verdicts: ['abandon portal'],
    alerts: ['dead'],
    attention: { 'portal: dead': 'unstuck clean tenders:1' },
    tables: tenders(tender(25 * 60)),
    arrange: async () => {},
  },
  'adopted rows of several sources, each with another state': {
    severity: 'stuck',
    health: { portal: 'healthy', shop: 'dead', books: 'waiting' },
    check: { portal: 'wait', shop: 'clean', books: 'start' },
    verdicts: ['abandon shop'],
    alerts: ['dead'],
    attention: { 'shop: dead': 'unstuck clean tenders:2' },
    tables: tenders(
      tender(1),
      tender(25 * 60, { portal_name: 'shop' }),
      tender(5, { portal_name: 'books', status: 'interrupted' }),
    ),
    arrange: async () => {},
  },
  'an adopted row that its program interrupted, with progress, for an hour': {
    severity: 'ok',
    health: { portal: 'waiting' },
    check: { portal: 'resume' },
    tables: tenders(tender(60, { status: 'interrupted', extracted_total_tenders: 40 })),
    arrange: async () => {},
  },
  'adopted rows that have all ended': {
    severity: 'ok',
    check: { portal: 'start' },
    tables: tenders(tender(60, { status: 'completed' }), tender(50, { status: 'cancelled' })),
    arrange: async () => {},
  },
  'a backlog of queued rows with whole numbers as states, a month old': {
    severity: 'ok',
    health: { portal: ['waiting', 'waiting'] },
    check: { portal: 'start' },
    tables: jobs(
      () => job(0, { created_at: ago(30 * 24 * HOUR) }),
      () => job(0, { created_at: ago(29 * 24 * HOUR) }),
    ),
    arrange: async () => {},
  },
  'an adopted row whose process lives on this host': {
    severity: 'ok',
    health: { portal: 'healthy' },
    check: { portal: 'wait' },
    tables: jobs(() => job(1, { pid: process.pid })),
    arrange: async () => {},
  },
  'an adopted row whose process has ended on this host': {
    severity: 'stuck',
    health: { portal: 'orphaned' },
    check: { portal: 'clean' },
    verdicts: ['fail portal'],
    attention: { 'portal: orphaned': 'unstuck recover' },
    tables: jobs(() => job(1, { pid: GONE })),
    arrange: async () => {},
  },
  'an adopted row whose process is on another host': {
    severity: 'ok',
    health: { portal: 'healthy' },
    check: { portal: 'wait' },
    tables: jobs(() => job(1, { pid: GONE, host: 'elsewhere' })),
    arrange: async () => {},
  },
  'two adopted rows of a source, of which one has lost its process': {
    severity: 'stuck',
    health: { portal: ['healthy', 'orphaned'] },
    check: { portal: 'wait' },
    verdicts: ['fail portal'],
    attention: { 'portal: orphaned': 'unstuck recover' },
    tables: jobs(
      () => job(1, { pid: process.pid }),
      () => job(1, { pid: GONE }),
    ),
    arrange: async () => {},
  },
  'an old adopted row of which alive() says that it lives': {
    severity: 'ok',
    health: { portal: 'healthy' },
    check: { portal: 'wait' },
    config: `preset: 'production'`,
    tables: { tenders: { ...tenders(tender(30 * 60)).tenders, options: 'alive: () => true' } },
    arrange: async () => {},
  },
  'a young adopted row of which alive() says that it has ended': {
    severity: 'stuck',
    health: { portal: 'orphaned' },
    check: { portal: 'clean' },
    verdicts: ['fail portal'],
    attention: { 'portal: orphaned': 'unstuck recover' },
    tables: { tenders: { ...tenders(tender(1)).tenders, options: 'alive: () => false' } },
    arrange: async () => {},
  },
  'an adopted row with progress that the preset fails': {
    severity: 'stuck',
    health: { portal: 'orphaned' },
    check: { portal: 'clean' },
    verdicts: ['fail portal'],
    alerts: ['silent'],
    attention: { 'portal: orphaned': 'unstuck recover' },
    config: `preset: 'development'`,
    tables: tenders(tender(10, { extracted_total_tenders: 40 })),
    arrange: async () => {},
  },
  'an old adopted row with progress of which alive() says that it has ended': {
    severity: 'stuck',
    health: { portal: 'orphaned' },
    check: { portal: 'resume' },
    verdicts: ['resume portal'],
    alerts: ['silent'],
    attention: { 'portal: orphaned': 'unstuck recover' },
    config: `preset: 'development'`,
    tables: {
      tenders: {
        ...tenders(tender(20 * 60, { extracted_total_tenders: 40 })).tenders,
        options: 'alive: () => false',
      },
    },
    arrange: async () => {},
  },
  'an adopted row that the preset failed, and the failing reverted': {
    severity: 'ok',
    health: { portal: 'waiting' },
    check: { portal: 'resume' },
    config: `preset: 'production'`,
    tables: tenders(tender(40, { extracted_total_tenders: 40 })),
    arrange: async (the) => {
      await the.cli('recover', '--yes')
      await the.cli('revert', 'tenders:1')
    },
  },
  'a day-old adopted row whose process has ended on this host': {
    severity: 'stuck',
    health: { portal: 'dead' },
    check: { portal: 'clean' },
    verdicts: ['fail portal'],
    alerts: ['dead'],
    attention: { 'portal: dead': 'unstuck clean jobs:1' },
    unsaid: /no owner is known/,
    tables: jobs(() =>
      job(1, { pid: GONE, created_at: ago(25 * HOUR), started_at: ago(25 * HOUR) }),
    ),
    arrange: async () => {},
  },
  'a stuck adopted row that is acknowledged': {
    severity: 'ok',
    health: { portal: 'orphaned' },
    check: { portal: 'resume' },
    isAcknowledged: true,
    tables: tenders(tender(30 * 60, { extracted_total_tenders: 40 })),
    arrange: (the) => the.cli('acknowledge', 'portal'),
  },
}
