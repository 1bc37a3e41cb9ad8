import { UsageError } from '../../model/errors.ts'
import { shortId } from '../../model/id.ts'
import { isLive } from '../../model/run.ts'
import type { TargetStatus } from '../../model/target.ts'
import type { RevertRequest, Store } from '../store.ts'
import { recordAudit } from './audit.ts'
import { sql, preferIndexes, type Connection, type Database, type Sql } from './database.ts'
import { fenceOff, TRY_AGAIN } from './replan.ts'
import { lockRun, lockRuns, otherLive } from './runs.ts'
import { ADD_MOVED_COUNTS } from './counters.ts'

const CANCEL_RETRY = sql('revert:retry')`
  UPDATE unstuck.run SET status = 'cancelled', error = $2, finished_at = clock_timestamp()
   WHERE id = $1
`
const REOPEN_RUN = sql('revert:run')`
  UPDATE unstuck.run
     SET status = $2, finished_at = NULL, acknowledged_at = NULL, error = NULL, reopened_at = clock_timestamp()
   WHERE id = $1
`
const RESTORE = sql('revert:targets')`
  WITH aside AS MATERIALIZED (
    SELECT t.id, t.status AS was
      FROM json_to_recordset($2::json) AS a (id uuid, status text, seq int)
      JOIN unstuck.target t ON t.id = a.id AND t.status = a.status AND t.checkpoint_seq = a.seq
     ORDER BY t.id FOR UPDATE OF t
  ),
  moved AS (
    UPDATE unstuck.target t SET epoch = t.epoch + 1, ${TRY_AGAIN}
      FROM aside
     WHERE t.id = aside.id
    RETURNING t.run_id, t.group_name, t.status, aside.was
  )
  ${ADD_MOVED_COUNTS}
`

// In batches along the index, because statements have a time limit. $1 is the run or source, $2 the key to continue after, $3
// the size of a batch. Items that another run has saved since stay. They are locked in the order of their keys, as by pages.
const DELETE_TARGETS = sql('delete:targets')`
  WITH edge AS MATERIALIZED (
    SELECT max(key) AS key FROM (
      SELECT key FROM unstuck.target WHERE run_id = $1 AND key > $2 ORDER BY key LIMIT $3) AS batch
  ),
  gone AS (
    DELETE FROM unstuck.target t USING edge
     WHERE t.run_id = $1 AND t.key > $2 AND t.key <= edge.key
    RETURNING 1
  )
  SELECT (SELECT count(*) FROM gone)::int AS count, key AS last FROM edge
`
const DELETE_ITEMS = sql('delete:items')`
  WITH edge AS MATERIALIZED (
    SELECT max(key) AS key FROM (
      SELECT key FROM unstuck.item WHERE source = $1 AND key > $2 ORDER BY key LIMIT $3) AS batch
  ),
  gone AS (
    DELETE FROM unstuck.item i USING edge
     WHERE i.source = $1 AND i.key > $2 AND i.key <= edge.key AND i.run_id = $4
    RETURNING 1
  )
  SELECT (SELECT count(*) FROM gone)::int AS count, key AS last FROM edge
`
const DELETE_COUNTERS = sql('delete:counters')`DELETE FROM unstuck.run_counters WHERE run_id = $1`
const DELETE_RUN = sql('delete:run')`DELETE FROM unstuck.run WHERE id = $1`

/** Reverts actions, and deletes a run, which cannot be reverted. */
export function revertMethods(db: Database): Pick<Store, 'revert' | 'deleteRun'> {
  return {
    revert: (asked) => db.transaction('revert', (connection) => revert(connection, asked)),

    deleteRun: ({ run, withItems, actor, because }) =>
      db.transaction('delete', async (connection) => {
        const { source, status } = await lockRun(connection, run)
        if (isLive(status)) {
          throw new UsageError(
            `Run ${shortId(run)} is ${status}: only what has ended can be deleted.`,
          )
        }
        await preferIndexes(connection, 'delete')
        const items = withItems ? await deleteAll(connection, DELETE_ITEMS, source, run) : 0
        const targets = await deleteAll(connection, DELETE_TARGETS, run)
        // Twice: a worker that retires at this moment moves rows, and the first waits for it.
        await connection.all(DELETE_COUNTERS, [run])
        await connection.all(DELETE_COUNTERS, [run])
        await connection.all(DELETE_RUN, [run])
        const [before, after] = [{ status, targets, items }, { status: 'deleted' }]
        const entry = { actor, action: 'delete', because, source, run }
        await recordAudit(connection, { ...entry, before, after })
        return { targets, items }
      }),
  }
}

const BATCH = 10_000

/** Deletes along the keys of one run or source, in batches. Returns how many were deleted. */
async function deleteAll(
  connection: Connection,
  statement: Sql,
  of: string,
  ...values: string[]
): Promise<number> {
  let gone = 0
  let after: string | null = ''
  while (after !== null) {
    type Row = { count: number; last: string | null }
    const [row]: Row[] = await connection.all<Row>(statement, [of, after, BATCH, ...values])
    gone += row!.count
    after = row!.last
  }
  return gone
}

async function revert(connection: Connection, asked: RevertRequest): Promise<boolean> {
  const { run, from, to, targets, cancel, undoes, actor, because } = asked
  const [own, retry] = await lockRuns(connection, cancel === null ? [run] : [run, cancel])
  const { source, kind, status } = own!
  if (status !== from) return false
  if (retry && (retry.status !== 'queued' || retry.started)) return false
  const other = await otherLive(connection, source, run)
  if (other && other.id !== cancel) return false

  const entry = { actor, because, source }
  if (cancel !== null) {
    const why = `the run it follows, ${shortId(run)}, was reverted`
    await connection.all(CANCEL_RETRY, [cancel, why])
    const [before, after] = [{ status: 'queued' }, { status: 'cancelled' }]
    const cancelled = { ...entry, action: 'cancel', because: why, run: cancel }
    await recordAudit(connection, { ...cancelled, before, after })
  }
  await connection.all(REOPEN_RUN, [run, to])
  if (!isLive(from)) {
    const open: TargetStatus[] = kind === 'single' ? ['in_progress', 'planned'] : ['in_progress']
    await fenceOff(connection, run, open)
  }
  if (targets.length > 0) await connection.writeCounts(RESTORE, [JSON.stringify(targets)])
  const [before, after] = [{ status: from }, { status: to, undoes, targets: targets.length }]
  await recordAudit(connection, { ...entry, action: 'revert', run, before, after })
  return true
}
