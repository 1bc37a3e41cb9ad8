import { messageOf, unknownTarget, UsageError } from '../../model/errors.ts'
import { shortId, type RunId, type TargetId } from '../../model/id.ts'
import { isLive, type RunStatus } from '../../model/run.ts'
import type { TargetStatus } from '../../model/target.ts'
import type { ReplanRequest, ReplanResult, RewindRequest, ParkedTarget, Store } from '../store.ts'
import { recordAudit, recordAuditEntries } from './audit.ts'
import { sql, preferIndexes, type Queryable, type Connection, type Database } from './database.ts'
import { isDataError } from './errors.ts'
import { BEFORE_ALL } from './lists.ts'
import { lockRun, refuseOtherLive, runState } from './runs.ts'
import { stripNul } from './strip-nul.ts'
import { ADD_MOVED_COUNTS } from './counters.ts'

/** The targets that are meant, whatever their status. The values of `chosen` stand from the given number on. */
const CHOSEN = (n: number) => /* sql */ `
  run_id = $${n} AND ($${n + 1}::text[] IS NULL OR group_name = ANY ($${n + 1}))
    AND ($${n + 2}::int IS NULL OR attempts <= $${n + 2})
`
const COUNT = sql('replan:count', 'anew')`
  SELECT count(*)::int AS count FROM unstuck.target WHERE ${CHOSEN(1)} AND status = ANY ($4::text[])
`
/** Of these the ones that fit. Found by their ids alone, so that a few cost a few. */
const COUNT_NAMED = sql('replan:count-named')`
  WITH named AS MATERIALIZED (
    SELECT run_id, group_name, attempts, status FROM unstuck.target WHERE id = ANY ($5::uuid[])
  )
  SELECT count(*)::int AS count FROM named WHERE ${CHOSEN(1)} AND status = ANY ($4::text[])
`
/** An operator wants another attempt: errors and crashes are reset, attempts are not. */
export const TRY_AGAIN = /* sql */ `
  status = 'planned', ready_at = CASE WHEN t.checkpoint_seq > 0 THEN 'epoch'::timestamptz END, claim_id = NULL,
  errors = 0, crashes = 0, crashes_alone = 0, crashes_since_epoch = t.epoch, finished_at = NULL, acknowledged_at = NULL
`
const REPLAN_NAMED = sql('replan:named')`
  WITH named AS MATERIALIZED (
    SELECT id, run_id, group_name, attempts, status FROM unstuck.target WHERE id = ANY ($6::uuid[])
     ORDER BY id FOR UPDATE
  ),
  moved AS (
    UPDATE unstuck.target t SET ${TRY_AGAIN}
      FROM (SELECT id, status AS was FROM named WHERE ${CHOSEN(2)} AND status = ANY ($5::text[])) AS chosen
     WHERE t.id = chosen.id
    RETURNING t.run_id, t.group_name, t.status, chosen.was
  ),
  counted AS (${ADD_MOVED_COUNTS})
  SELECT was AS status, count(*)::int AS count FROM moved GROUP BY was
`
// $5 is the status, $6 the id to go on after: a statement takes no more than a batch, as a server has only so long to answer.
const REPLAN = sql('replan', 'anew')`
  WITH chosen AS MATERIALIZED (
    SELECT id, status AS was FROM unstuck.target WHERE ${CHOSEN(2)} AND status = $5 AND id > $6
     ORDER BY id LIMIT $7 FOR UPDATE
  ),
  moved AS (
    UPDATE unstuck.target t SET ${TRY_AGAIN}
      FROM chosen
     WHERE t.id = chosen.id
    RETURNING t.run_id, t.group_name, t.status, chosen.was
  ),
  counted AS (${ADD_MOVED_COUNTS})
  SELECT (SELECT count(*) FROM moved)::int AS count, id AS last FROM chosen ORDER BY id DESC LIMIT 1
`
const HAS_OPEN = sql('replan:open')`
  SELECT FROM unstuck.target WHERE run_id = $1 AND status IN ('planned', 'in_progress') LIMIT 1
`
const REOPEN = sql('replan:reopen')`
  UPDATE unstuck.run
     SET status = CASE WHEN started_at IS NULL THEN 'queued' ELSE 'interrupted' END,
         finished_at = NULL, acknowledged_at = NULL, error = NULL, reopened_at = clock_timestamp()
   WHERE id = $1
  RETURNING status
`
/** Fences off the workers that held them when the run ended. */
const FENCE_OFF = sql('reopen:fence')`
  WITH open AS MATERIALIZED (
    SELECT id, status AS was, (status = 'in_progress')::int AS held FROM unstuck.target
     WHERE run_id = $2 AND status = ANY ($3::text[])
     ORDER BY id FOR UPDATE
  ),
  moved AS (
    UPDATE unstuck.target t
       SET status = 'planned', epoch = t.epoch + 1, claim_id = NULL,
           ready_at = CASE WHEN open.held = 1 THEN 'epoch' ELSE t.ready_at END,
           crashes = greatest(t.crashes - open.held, 0),
           crashes_alone = greatest(t.crashes_alone - open.held * t.claimed_alone::int, 0)
      FROM open
     WHERE t.id = open.id
    RETURNING t.run_id, t.group_name, t.status, open.was
  )
  ${ADD_MOVED_COUNTS}
`
const UNKNOWN = sql('park-targets:unknown')`
  SELECT asked.id FROM unnest($1::uuid[]) AS asked (id)
   WHERE NOT EXISTS (SELECT FROM unstuck.target t WHERE t.id = asked.id) LIMIT 1
`
// Nothing is asked of the runs, so they are not locked.
const PARK = sql('park-targets')`
  WITH chosen AS MATERIALIZED (
    SELECT id, status AS was, (status = 'in_progress')::int AS held FROM unstuck.target
     WHERE id = ANY ($2::uuid[]) AND status NOT IN ('done', 'parked')
     ORDER BY id FOR UPDATE
  ),
  moved AS (
    UPDATE unstuck.target t
       SET status = 'parked', claim_id = NULL, last_error = $3, finished_at = clock_timestamp(), acknowledged_at = NULL,
           epoch = t.epoch + chosen.held,
           crashes = greatest(t.crashes - chosen.held, 0),
           crashes_alone = greatest(t.crashes_alone - chosen.held * t.claimed_alone::int, 0)
      FROM chosen
     WHERE t.id = chosen.id
    RETURNING t.id, t.run_id, t.group_name, t.status, chosen.was
  ),
  counted AS (${ADD_MOVED_COUNTS})
  SELECT m.id AS target, m.run_id AS run, m.was AS "from", r.source
    FROM moved m JOIN unstuck.run r ON r.id = m.run_id
   ORDER BY array_position($2::uuid[], m.id)
`
const RUN_OF = sql('rewind:run')`SELECT run_id AS run FROM unstuck.target WHERE id = $1`
const LOCK_TARGET = sql('rewind:lock')`
  SELECT status, page FROM unstuck.target WHERE id = $1 FOR UPDATE
`
const REWIND = sql('rewind')`
  WITH moved AS (
    UPDATE unstuck.target
       SET status = 'planned', epoch = epoch + 1, claim_id = NULL, page = $4, next_url = $5,
           cursor = $6, last_item_id = NULL, checkpoint_hash = NULL, ready_at = 'epoch',
           errors = 0, crashes = 0, crashes_alone = 0, crashes_since_epoch = epoch, finished_at = NULL, acknowledged_at = NULL
     WHERE id = $2
    RETURNING run_id, group_name, status, $3::text AS was
  )
  ${ADD_MOVED_COUNTS}
`

/** Actions of operators on targets. */
export function replanMethods(db: Database): Pick<Store, 'replan' | 'parkTargets' | 'rewind'> {
  return {
    replan: (request) =>
      request.dryRun
        ? count(db, request)
        : db.transaction('replan', (connection) => replan(connection, request)),

    parkTargets: ({ targets, actor, because }) =>
      db.transaction('park-targets', async (connection) => {
        const [unknown] = await connection.all<{ id: TargetId }>(UNKNOWN, [targets])
        if (unknown) throw unknownTarget(unknown.id)
        type Row = ParkedTarget & { source: string }
        const rows = await connection.writeCounts<Row>(PARK, [targets, stripNul(because)])
        const entry = { actor, action: 'park', because, after: { status: 'parked' } }
        const entries = rows.map(({ target, run, from, source }) => {
          return { ...entry, source, run, target, before: { status: from } }
        })
        await recordAuditEntries(connection, entries)
        return rows.map(({ target, run, from }) => ({ target, run, from }))
      }),

    rewind: async (request) => {
      try {
        await db.transaction('rewind', (connection) => rewind(connection, request))
      } catch (error) {
        if (!isDataError(error)) throw error
        throw new UsageError(
          `PostgreSQL cannot store where to go back to: ${messageOf(error)}. Clean the address or the cursor.`,
          { cause: error },
        )
      }
    },
  }
}

function chosen({ run, groups, attemptsMax }: ReplanRequest): unknown[] {
  return [run, groups ?? null, attemptsMax ?? null]
}

async function count(db: Queryable, request: ReplanRequest): Promise<ReplanResult> {
  const { source, status, planned } = await runState(db, request.run)
  await refuseOtherLive(db, source, request.run)
  const values = [...chosen(request), request.statuses]
  const [row] = await (request.targets
    ? db.all<{ count: number }>(COUNT_NAMED, [...values, request.targets])
    : db.all<{ count: number }>(COUNT, values))
  const targets = row!.count
  return { targets, reopened: await reopensRun(db, request, { status, planned, targets }) }
}

/** Whether a run that has ended has something to live for again. */
async function reopensRun(
  db: Queryable,
  { run, reopen }: ReplanRequest,
  { status, planned, targets }: { status: RunStatus; planned: boolean; targets: number },
): Promise<boolean> {
  if (isLive(status)) return false
  if (targets > 0 || reopen === 'for-more') return true
  return reopen && (!planned || (await db.all(HAS_OPEN, [run])).length > 0)
}

async function replan(connection: Connection, request: ReplanRequest): Promise<ReplanResult> {
  const { run, action, actor, because } = request
  const { source, status, planned } = await lockRun(connection, run)
  await refuseOtherLive(connection, source, run)
  await preferIndexes(connection, 'replan')
  const counts = await (request.targets
    ? putBackThese(connection, request, request.targets)
    : putBack(connection, request))
  const targets = Object.values(counts).reduce((sum, count) => sum + count, 0)
  const reopened = await reopensRun(connection, request, { status, planned, targets })
  if (targets === 0 && !reopened) return { targets, reopened }
  const becomes = reopened ? await reopenRun(connection, run) : status
  const target = request.targets?.length === 1 ? request.targets[0]! : null
  const before = { status, targets: counts }
  const after = { status: becomes, targets: { planned: targets } }
  await recordAudit(connection, { actor, action, because, source, run, target, before, after })
  return { targets, reopened }
}

const BATCH = 10_000

/** How many there were of each status. */
type ByStatus = Partial<Record<TargetStatus, number>>

async function putBackThese(
  connection: Connection,
  request: ReplanRequest,
  targets: readonly TargetId[],
): Promise<ByStatus> {
  const counts: ByStatus = {}
  for (let n = 0; n < targets.length; n += BATCH) {
    const values = [...chosen(request), request.statuses, targets.slice(n, n + BATCH)]
    type Row = { status: TargetStatus; count: number }
    for (const { status, count } of await connection.writeCounts<Row>(REPLAN_NAMED, values))
      counts[status] = (counts[status] ?? 0) + count
  }
  return counts
}

async function putBack(connection: Connection, request: ReplanRequest): Promise<ByStatus> {
  const counts: ByStatus = {}
  for (const status of request.statuses) {
    let after: TargetId | null = BEFORE_ALL
    while (after !== null) {
      const values: unknown[] = [...chosen(request), status, after, BATCH]
      const [row] = await connection.writeCounts<{ count: number; last: TargetId }>(REPLAN, values)
      if (row) counts[status] = (counts[status] ?? 0) + row.count
      after = row?.last ?? null
    }
  }
  return counts
}

/** Reopens an ended run. Returns its status. */
async function reopenRun(connection: Connection, run: RunId): Promise<RunStatus> {
  await fenceOff(connection, run, ['in_progress'])
  const [row] = await connection.all<{ status: RunStatus }>(REOPEN, [run])
  return row!.status
}

/** Puts targets back in the queue that were held when their run ended: nothing else would release them. */
export async function fenceOff(
  connection: Connection,
  run: RunId,
  statuses: readonly TargetStatus[],
): Promise<void> {
  await preferIndexes(connection, 'reopen')
  await connection.writeCounts(FENCE_OFF, [run, statuses])
}

async function rewind(connection: Connection, request: RewindRequest): Promise<void> {
  const { target: id, to, next, cursor, actor, because } = request
  const [found] = await connection.all<{ run: RunId }>(RUN_OF, [id])
  if (!found) throw unknownTarget(id)
  const { run } = found
  const { source, status: runStatus } = await lockRun(connection, run)
  type Row = { status: TargetStatus; page: number }
  const [row] = await connection.all<Row>(LOCK_TARGET, [id])
  if (!row) throw unknownTarget(id)
  const { status, page } = row
  if (to > page)
    throw new UsageError(`Target ${shortId(id)} is at page ${page}: it can only go back.`)
  await refuseOtherLive(connection, source, run)
  const json = cursor === null ? null : JSON.stringify(cursor)
  await connection.writeCounts(REWIND, [id, status, to, next, json])
  if (!isLive(runStatus)) await reopenRun(connection, run)
  const entry = { actor, action: 'rewind', because, source, run, target: id }
  const after = { status: 'planned', page: to }
  await recordAudit(connection, { ...entry, before: { status, page }, after })
}
