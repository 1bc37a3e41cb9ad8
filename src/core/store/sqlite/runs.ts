import { AlreadyRunningError, unknownRun, UsageError } from '../../model/errors.ts'
import { newId } from '../../model/id.ts'
import { LIMITS } from '../../model/limits.ts'
import type { Run, RunKind, RunStatus } from '../../model/run.ts'
import type { TargetInput } from '../../model/target.ts'
import { cleanText } from '../../model/text.ts'
import { serializeInput } from '../command-rows.ts'
import { checkTargets, serializeCursor, serializeData } from '../new-targets.ts'
import { serializePolicy, toCounts, toRun, type RunRow, type CountersRow } from '../rows.ts'
import type { Store } from '../store.ts'
import { sql, type Connection, type Database } from './database.ts'
import { readJson } from './lists.ts'
import { addCounts, SUMS } from './counters.ts'

/** Nothing of a paused source is claimed. */
export const NOT_PAUSED = /* sql */ `
  NOT EXISTS (SELECT 1 FROM source WHERE source.source = run.source AND paused_at IS NOT NULL)
`
export const LIVE = `('queued', 'running', 'interrupted')`

const PAUSED = /* sql */ `
  (SELECT paused_at FROM source WHERE source.source = r.source) AS paused_at,
  (SELECT paused_because FROM source WHERE source.source = r.source) AS paused_because
`
/** A run with its counters. `owner` is the worker of a run with one target. */
const COLUMNS = (texts: string): string => /* sql */ `
  r.id, r.source, r.kind, r.status, r.policy, r.created_at, r.started_at, r.resumed_at, r.reopened_at, r.planned_at,
  r.finished_at, r.acknowledged_at, ${PAUSED}, r.progress_done, r.progress_total, r.resumes, r.retries, r.retry_of, ${texts},
  r.artifacts, r.profile,
  CASE r.kind WHEN 'single' THEN
    (SELECT worker_id FROM target WHERE run_id = r.id AND status = 'in_progress')
  END AS owner,
  ${SUMS}
`
const RUN_COLUMNS = COLUMNS('r.error, r.input')
/** What is long is cut by the database; of a large input nothing is left. */
export const LISTED_COLUMNS = COLUMNS(/* sql */ `
  substr(r.error, 1, ${LIMITS.listed}) AS error, iif(length(r.input) <= ${LIMITS.listed}, r.input, NULL) AS input,
  max(coalesce(length(r.error), 0), coalesce(length(r.input), 0)) > ${LIMITS.listed} AS cut`)
export const RUN = sql('run')`
  SELECT ${RUN_COLUMNS} FROM run r LEFT JOIN run_counters t ON t.run_id = r.id WHERE r.id = :id GROUP BY r.id
`
const LIVE_RUN = sql('run:live')`
  SELECT ${RUN_COLUMNS} FROM run r LEFT JOIN run_counters t ON t.run_id = r.id
   WHERE r.source = :source AND r.status IN ${LIVE} GROUP BY r.id
`
const COUNTS_BY_GROUP = sql('counts:group')`
  SELECT t.group_name, ${SUMS} FROM run_counters t WHERE t.run_id = :run GROUP BY t.group_name ORDER BY t.group_name
`
const COUNTS_BY_PAGE = sql('counts:page')`
  SELECT page, count(*) AS targets FROM target WHERE run_id = :run GROUP BY page ORDER BY page
`

const LIVE_RUN_ID = sql('enqueue:live')`
  SELECT id, status FROM run WHERE source = :source AND status IN ${LIVE}
`
const INSERT = sql('enqueue:insert')`
  INSERT INTO run (id, source, kind, status, policy, created_at, retries, retry_of, input, profile)
  VALUES (:id, :source, :kind, 'queued', :policy, :now, :retries, :retryOf, :input, :profile)
`
const IS_LIVE = sql('plan:live')`SELECT 1 FROM run WHERE id = :run AND status IN ${LIVE}`
const INSERT_TARGET = sql('plan:insert')`
  INSERT INTO target (id, run_id, key, group_name, url, data, cursor, status, ready_at, finished_at, last_activity_at)
  VALUES (:id, :run, :key, :group_name, :url, :data, :cursor, :status, :readyAt, iif(:status = 'done', :now, NULL), :now)
  ON CONFLICT (run_id, key) DO NOTHING
`
// What was begun before waits since 0; what is put in front of that, since before then.
export const FIRST_POSITION = sql('plan:first-position')`
  SELECT ready_at FROM target
   WHERE run_id = :run AND status = 'planned' AND crashes = 0 AND ready_at < 0
   ORDER BY ready_at LIMIT 1
`
const CLAIM_PLANNING = sql('plan:take')`
  UPDATE run SET planning_worker_id = :worker
   WHERE id = :run AND planned_at IS NULL AND status IN ${LIVE}
     AND ${NOT_PAUSED}
     AND (planning_worker_id IS NULL OR planning_worker_id = :worker
          OR NOT EXISTS (SELECT 1 FROM worker w WHERE w.id = run.planning_worker_id AND w.ended_at IS NULL))
`
const FINISH_PLANNING = sql('plan:finish')`
  UPDATE run SET planned_at = coalesce(planned_at, :now), planning_worker_id = NULL WHERE id = :run
`
const PLANNED = sql('plan:done')`UPDATE run SET planned_at = :now WHERE id = :run`
const RUN_STATE = sql('run:state')`SELECT source, kind, status, planned_at FROM run WHERE id = :run`
export const SET_POLICY = sql('policy')`UPDATE run SET policy = :policy WHERE id = :run`

export function runMethods(db: Database) {
  return {
    enqueue: async ({ id, source, kind, policy, input, profile }) => {
      const kept = serializeInput(source, input)
      return db.write('enqueue', (tx) => {
        const live = tx.get<{ id: string; status: string }>(LIVE_RUN_ID, { source })
        if (live?.id === id) return // asked again
        if (live) throw new AlreadyRunningError(source, live.id, { status: live.status })
        const now = tx.now()
        tx.run(INSERT, {
          id,
          source,
          kind,
          policy: serializePolicy(policy),
          now,
          retries: 0,
          retryOf: null,
          input: kept,
          profile: profile ?? null,
        })
        if (kind === 'single') addOnlyTarget(tx, id, { key: source, url: null }, now)
      })
    },

    plan: async (run, targets) => {
      checkTargets(targets)
      return db.write('plan', (tx) => {
        if (!tx.get(IS_LIVE, { run }))
          throw new UsageError(`Run ${run} has ended: it takes no more targets.`)
        return insertTargets(tx, run, targets)
      })
    },

    claimPlanning: (run, worker) =>
      db.write('plan:take', (tx) => tx.run(CLAIM_PLANNING, { run, worker }) === 1),

    finishPlanning: (run) =>
      db.write('plan:finish', (tx) => {
        tx.run(FINISH_PLANNING, { run, now: tx.now() })
      }),

    setPolicy: (run, policy) =>
      db.write('policy', (tx) => {
        tx.run(SET_POLICY, { run, policy: serializePolicy(policy) })
      }),

    liveRun: async (source) => oneRun(db.read((tx) => tx.get<SqliteRunRow>(LIVE_RUN, { source }))),
    run: async (id) => oneRun(db.read((tx) => tx.get<SqliteRunRow>(RUN, { id }))),

    countsByGroup: async (run) =>
      db.read((tx) =>
        tx.all<CountersRow & { group_name: string }>(COUNTS_BY_GROUP, { run }).map((row) => ({
          group: row.group_name === '' ? null : row.group_name,
          counts: toCounts(row),
        })),
      ),
    countsByPage: async (run) =>
      db.read((tx) =>
        tx
          .all<{ page: number; targets: number }>(COUNTS_BY_PAGE, { run })
          .map(({ page, targets }) => ({ page, targets })),
      ),
  } satisfies Partial<Store>
}

/** Adds targets to a run inside a transaction. Returns how many were new. */
export function insertTargets(
  tx: Connection,
  run: string,
  targets: readonly (TargetInput & { readonly id?: string })[],
): number {
  const now = tx.now()
  const added = new Map<string, { planned: number; done: number }>()
  // Ids made in one millisecond are in no order; sorted, they keep the order of planning, which is that of claiming.
  const ids = targets.map(({ id }) => id ?? newId()).sort()
  let foremost = targets.some((target) => target.forefront) ? firstPosition(tx, run, now) : 0
  let count = 0
  for (const [n, target] of targets.entries()) {
    const { key, group: group_name = '', url = null } = target
    const [cursor, readyAt] = [serializeCursor(target), target.forefront ? --foremost : null]
    const place = url === null ? null : cleanText(url)
    const data = serializeData(target)
    const status = target.done ? 'done' : 'planned'
    const row = { id: ids[n]!, run, key, group_name, url: place, data, cursor, status }
    if (tx.run(INSERT_TARGET, { ...row, readyAt, now }) === 0) continue
    count++
    const change = added.get(group_name) ?? { planned: 0, done: 0 }
    change[status]++
    added.set(group_name, change)
  }
  for (const [group_name, change] of added) addCounts(tx, run, group_name, change, now)
  return count
}

/** A position before all that waits, and before what was put in front earlier and is claimed now. */
export function firstPosition(tx: Connection, run: string, now: number): number {
  return Math.min(tx.get<{ ready_at: number }>(FIRST_POSITION, { run })?.ready_at ?? 0, -now)
}

/** The one target of a run that has only one, which is planned with it. */
export function addOnlyTarget(
  tx: Connection,
  run: string,
  { key, url }: { key: string; url: string | null },
  now: number,
): void {
  insertTargets(tx, run, [url === null ? { key } : { key, url }])
  tx.run(PLANNED, { run, now })
}

type RunState = { source: string; kind: RunKind; status: RunStatus; planned_at: number | null }

/** Returns the state of a run, for a transaction that changes it. */
export function findRunState(tx: Connection, run: string): RunState | undefined {
  return tx.get<RunState>(RUN_STATE, { run })
}

/** The same. Throws if there is no such run. */
export function runState(tx: Connection, run: string): RunState {
  const found = findRunState(tx, run)
  if (!found) throw unknownRun(run)
  return found
}

/** Only one run of a source may be live: one that is to live again must wait for the other. */
export function refuseOtherLive(tx: Connection, source: string, run: string): void {
  const live = tx.get<{ id: string; status: string }>(LIVE_RUN_ID, { source })
  if (live && live.id !== run)
    throw new AlreadyRunningError(source, live.id, { status: live.status })
}

/** A queued run that follows another which died with nothing done. */
export function insertRetry(
  tx: Connection,
  retry: { id: string; of: Pick<Run, 'id' | 'source' | 'policy' | 'retries' | 'input'> },
): void {
  const { id, of } = retry
  tx.run(INSERT, {
    id,
    source: of.source,
    kind: 'single',
    policy: serializePolicy(of.policy),
    now: tx.now(),
    retries: of.retries + 1,
    retryOf: of.id,
    input: serializeInput(of.source, of.input),
    profile: null,
  })
}

export type SqliteRunRow = Omit<RunRow, 'policy' | 'input'> & {
  policy: string
  input: string | null
}

export function readRun(row: SqliteRunRow): Run {
  const policy = JSON.parse(row.policy) as RunRow['policy']
  return toRun({ ...row, policy, input: readJson(row.input) })
}

function oneRun(row: SqliteRunRow | undefined): Run | null {
  return row ? readRun(row) : null
}
