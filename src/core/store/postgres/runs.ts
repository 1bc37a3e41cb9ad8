import { AlreadyRunningError, messageOf, unknownRun, UsageError } from '../../model/errors.ts'
import { newId, type RunId } from '../../model/id.ts'
import { LIMITS } from '../../model/limits.ts'
import type { RunKind, RunStatus } from '../../model/run.ts'
import { serializeInput } from '../command-rows.ts'
import { serializePolicy, toCounts, toRun, type RunRow, type CountersRow } from '../rows.ts'
import type { Store } from '../store.ts'
import { ms, sql, type Queryable, type Connection, type Database } from './database.ts'
import { isDataError } from './errors.ts'
import { ADD_ON_CONFLICT, SUMS } from './counters.ts'

export const LIVE = `('queued', 'running', 'interrupted')`

/** A run with its counters. `owner` is the worker of a run with one target. */
const COLUMNS = (texts: string): string => /* sql */ `
  r.id, r.source, r.kind, r.status, r.policy, r.progress_done, r.progress_total,
  r.resumes, r.retries, r.retry_of, ${texts}, r.artifacts, r.profile,
  ${ms('r.created_at')} AS created_at, ${ms('r.started_at')} AS started_at,
  ${ms('r.resumed_at')} AS resumed_at, ${ms('r.reopened_at')} AS reopened_at,
  ${ms('r.planned_at')} AS planned_at, ${ms('r.finished_at')} AS finished_at, ${ms('r.acknowledged_at')} AS acknowledged_at,
  (SELECT ${ms('paused_at')} FROM unstuck.source WHERE source = r.source) AS paused_at,
  (SELECT paused_because FROM unstuck.source WHERE source = r.source) AS paused_because,
  CASE r.kind WHEN 'single' THEN
    (SELECT worker_id FROM unstuck.target WHERE run_id = r.id AND status = 'in_progress' LIMIT 1)
  END AS owner,
  counters.*
`
const RUN_COLUMNS = COLUMNS('r.error, r.input')
/** What is long is cut by the database; of a large input nothing is left. */
export const LISTED_COLUMNS = COLUMNS(/* sql */ `
  left(r.error, ${LIMITS.listed}) AS error,
  CASE WHEN length(r.input::text) <= ${LIMITS.listed} THEN r.input END AS input,
  greatest(length(r.error), length(r.input::text), 0) > ${LIMITS.listed} AS cut`)
export const COUNTERS = /* sql */ `
  CROSS JOIN LATERAL (
    SELECT ${SUMS}, ${ms('max(t.last_activity_at)')} AS last_activity_at
      FROM unstuck.run_counters t WHERE t.run_id = r.id
  ) AS counters
`
export const RUNS_BY_ID = sql('runs:by-id')`
  SELECT ${RUN_COLUMNS} FROM unstuck.run r ${COUNTERS} WHERE r.id = ANY ($1::uuid[])
`
const LIVE_RUN = sql('runs:live')`
  SELECT ${RUN_COLUMNS} FROM unstuck.run r ${COUNTERS} WHERE r.source = $1 AND r.status IN ${LIVE}
`
const COUNTS_BY_GROUP = sql('counts:group')`
  SELECT t.group_name, ${SUMS} FROM unstuck.run_counters t WHERE t.run_id = $1 GROUP BY t.group_name ORDER BY t.group_name
`
const COUNTS_BY_PAGE = sql('counts:page')`
  SELECT page, count(*)::int AS targets FROM unstuck.target WHERE run_id = $1 GROUP BY page ORDER BY page
`
const ENQUEUE = sql('enqueue')`
  WITH queued AS (
    INSERT INTO unstuck.run (id, source, kind, status, policy, planned_at, input, profile)
    VALUES ($2, $3, $4, 'queued', $5, CASE $4 WHEN 'single' THEN clock_timestamp() END, $7, $8)
    ON CONFLICT DO NOTHING
    RETURNING id, source, kind
  ),
  only_target AS (
    INSERT INTO unstuck.target (id, run_id, key)
    SELECT $6, id, source FROM queued WHERE kind = 'single'
    RETURNING run_id
  ),
  counted AS (
    INSERT INTO unstuck.run_counters (run_id, group_name, writer, planned) SELECT run_id, '', $1, 1 FROM only_target
    ${ADD_ON_CONFLICT}
  )
  SELECT id FROM queued
`
const IN_THE_WAY = sql('enqueue:live')`
  SELECT id, status FROM unstuck.run WHERE id = $1 OR (source = $2 AND status IN ${LIVE})
   ORDER BY id = $1 DESC LIMIT 1
`
/** A run before a move of it. */
const RUN_STATE = /* sql */ `
  SELECT id, source, kind, status, started_at IS NOT NULL AS started, planned_at IS NOT NULL AS planned
    FROM unstuck.run WHERE id = ANY ($1::uuid[]) ORDER BY id
`
const RUN_STATE_OF = sql('run:read')`${RUN_STATE}`
const LOCK = sql('run:lock')`${RUN_STATE} FOR UPDATE`
const OTHER_LIVE = sql('run:other')`
  SELECT id, status FROM unstuck.run WHERE source = $1 AND status IN ${LIVE} AND id <> $2
`
const SET_POLICY = sql('policy')`UPDATE unstuck.run SET policy = $2 WHERE id = $1`

export function runMethods(db: Database) {
  return {
    enqueue: async ({ id, source, kind, policy, input, profile }) => {
      const kept = serializeInput(source, input)
      for (;;) {
        const values = [id, source, kind, serializePolicy(policy), newId(), kept, profile ?? null]
        const made = await db.writeCounts(ENQUEUE, values).catch(refuseInput)
        if (made.length > 0) return
        const [other] = await db.all<{ id: string; status: string }>(IN_THE_WAY, [id, source])
        if (other?.id === id) return // asked again
        if (other) throw new AlreadyRunningError(source, other.id, { status: other.status })
        // What was in the way has just ended.
      }
    },

    setPolicy: async (run, policy) =>
      void (await db.all(SET_POLICY, [run, serializePolicy(policy)])),

    liveRun: async (source) => oneRun(await db.all<RunRow>(LIVE_RUN, [source])),
    run: async (id) => oneRun(await db.all<RunRow>(RUNS_BY_ID, [[id]])),

    countsByGroup: async (run) => {
      const rows = await db.all<CountersRow & { group_name: string }>(COUNTS_BY_GROUP, [run])
      return rows.map((row) => ({
        group: row.group_name === '' ? null : row.group_name,
        counts: toCounts(row),
      }))
    },
    countsByPage: (run) => db.all<{ page: number; targets: number }>(COUNTS_BY_PAGE, [run]),
  } satisfies Partial<Store>
}

function refuseInput(error: unknown): never {
  if (!isDataError(error)) throw error
  throw new UsageError(
    `PostgreSQL cannot store the source or the input of the run: ${messageOf(error)}. Clean them, then try again.`,
    { cause: error },
  )
}

type RunState = {
  id: RunId
  source: string
  kind: RunKind
  status: RunStatus
  started: boolean
  planned: boolean
}

/** The state of a run. */
export async function runState(db: Queryable, run: RunId): Promise<RunState> {
  return found(await db.all<RunState>(RUN_STATE_OF, [[run]]), run)
}

/**
 * The same with a lock, before a move of the run. A transaction that locks a run and targets of
 * it locks the run first; one that locks several runs locks them in the order of their ids.
 */
export async function lockRun(connection: Connection, run: RunId): Promise<RunState> {
  return found(await connection.all<RunState>(LOCK, [[run]]), run)
}

export async function lockRunIfAny(
  connection: Connection,
  run: RunId,
): Promise<RunState | undefined> {
  return (await connection.all<RunState>(LOCK, [[run]]))[0]
}

/** Returns them in the order of the given ids. */
export async function lockRuns(
  connection: Connection,
  runs: readonly RunId[],
): Promise<RunState[]> {
  const rows = await connection.all<RunState>(LOCK, [runs])
  return runs.map((run) => found(rows, run))
}

function found(rows: readonly RunState[], run: RunId): RunState {
  const row = rows.find(({ id }) => id === run)
  if (!row) throw unknownRun(run)
  return row
}

type OtherLive = { id: RunId; status: RunStatus }

/** The live run of a source, where it is not this one. */
export async function otherLive(
  db: Queryable,
  source: string,
  run: RunId,
): Promise<OtherLive | null> {
  const [other] = await db.all<OtherLive>(OTHER_LIVE, [source, run])
  return other ?? null
}

/** Only one run of a source may be live: one that is to live again must wait for the other. */
export async function refuseOtherLive(db: Queryable, source: string, run: RunId): Promise<void> {
  const other = await otherLive(db, source, run)
  if (other) throw new AlreadyRunningError(source, other.id, { status: other.status })
}

function oneRun([row]: RunRow[]): ReturnType<typeof toRun> | null {
  return row ? toRun(row) : null
}
