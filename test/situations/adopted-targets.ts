import { ypTargets, type NewRow } from '../../src/testing/user-tables.ts'
import { ago, HOUR, MINUTE, SECOND, type Situations } from './situation.ts'

/** Rows in progress, by how long ago each last had a heartbeat; `moved`: since when its page is the same. */
const rows =
  (...silentMs: number[]) =>
  (): NewRow[] =>
    silentMs.map((ms, n) => ({
      id: n + 1,
      slug: `town-${n + 1}`,
      status: 'IN_PROGRESS',
      claimed_by: `worker-${n + 1}`,
      claimed_at: ago(3 * HOUR),
      heartbeat_at: ago(ms),
      page_current: 3,
    }))

const claimed = (ms: number): NewRow => ({ claimed_at: ago(ms), heartbeat_at: ago(ms - MINUTE) })

/** A server that has just started knows of no earlier heartbeat: on SQLite there is no server. */
const onSqlite = { only: 'sqlite', arrange: async () => {} } as const

/** A table of the user's own that is one run, with each row as a target. */
export const ADOPTED_TARGETS: Situations = {
  'a table of targets with live rows': {
    severity: 'ok',
    health: { towns: 'healthy' },
    check: { towns: 'wait' },
    tables: { towns: { table: ypTargets, rows: rows(SECOND, 2 * SECOND) } },
    arrange: async () => {},
  },
  'a table of targets with three live rows and a dead one': {
    ...onSqlite,
    severity: 'stuck',
    health: { towns: 'orphaned' },
    check: { towns: 'wait' },
    verdicts: ['resume towns'],
    alerts: ['silent'],
    attention: { 'towns: orphaned': 'unstuck recover' },
    unsaid: /held by lost workers/,
    tables: { towns: { table: ypTargets, rows: rows(SECOND, SECOND, SECOND, 2 * HOUR) } },
  },
  'a table of targets with three rows that have been silent for 2 h': {
    ...onSqlite,
    severity: 'stuck',
    health: { towns: 'orphaned' },
    check: { towns: 'resume' },
    verdicts: ['resume towns', 'resume towns', 'resume towns'],
    alerts: ['silent'],
    attention: { 'towns: orphaned': 'unstuck recover' },
    tables: { towns: { table: ypTargets, rows: rows(2 * HOUR, 2 * HOUR, 2 * HOUR) } },
  },
  'a table of targets with a live row and one of unknown liveness': {
    severity: 'attention',
    health: { towns: 'unknown' },
    check: { towns: 'wait' },
    attention: { 'towns: unknown': 'unstuck explain ID' },
    tables: {
      towns: {
        table: ypTargets,
        rows: rows(2 * HOUR, SECOND),
        options: `alive: ({ id }) => { if (Number(id) === 1) throw new Error('no answer'); return true }`,
      },
    },
    arrange: async () => {},
  },
  'a table of targets of which all are planned': {
    severity: 'ok',
    health: { towns: 'waiting' },
    check: { towns: 'start' },
    tables: {
      towns: {
        table: ypTargets,
        rows: () => [{ id: 1, slug: 'town-1', status: 'PLANNED' }],
      },
    },
    arrange: async () => {},
  },
  'a table of targets with failed, parked and stuck ones': {
    severity: 'attention',
    health: { towns: 'healthy' },
    check: { towns: 'wait' },
    alerts: ['parked'],
    attention: { 'towns: 1 target failed, 1 parked, 1 stuck': 'unstuck show ID' },
    tables: {
      towns: {
        table: ypTargets,
        rows: () => [
          ...rows(MINUTE)(),
          { id: 2, slug: 'a', status: 'FAILED', last_error: 'HTTP 500' },
          { id: 3, slug: 'b', status: 'PARKED' },
          { id: 4, slug: 'c', status: 'STUCK' },
        ],
      },
    },
    arrange: async () => {},
  },
  'a table of targets of which none is in progress, but one that began early has just ended': {
    severity: 'ok',
    health: { towns: 'waiting' },
    check: { towns: 'resume' },
    tables: {
      towns: {
        table: ypTargets,
        rows: () => [
          { id: 1, slug: 'a', status: 'DONE', ...claimed(5 * HOUR), finished_at: ago(SECOND) },
          { id: 2, slug: 'b', status: 'DONE', ...claimed(4 * HOUR), finished_at: ago(3 * HOUR) },
          { id: 3, slug: 'c', status: 'PLANNED' },
        ],
      },
    },
    arrange: async () => {},
  },
  'a table of targets that are all done': {
    severity: 'ok',
    check: { towns: 'start' },
    tables: {
      towns: {
        table: ypTargets,
        rows: () => [{ id: 1, slug: 'a', status: 'DONE', finished_at: ago(HOUR) }],
      },
    },
    arrange: async () => {},
  },
}
