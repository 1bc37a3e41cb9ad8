import type { EndedWorkerBounds, Store } from '../store.ts'
import { DELETE_BATCH, deleteInBatches, FOLD_BATCH, foldStats } from '../list-rows.ts'
import { timestamp, sql, type Database, type Sql } from './database.ts'
import { foldCounters } from './counters.ts'

const REMOVE_SAMPLES = sql('sample:prune')`
  WITH gone AS (
    DELETE FROM unstuck.sample
     WHERE ctid = ANY (ARRAY (
       SELECT ctid FROM unstuck.sample WHERE at < ${timestamp('$1')} ORDER BY at LIMIT $2))
    RETURNING 1
  )
  SELECT count(*)::int AS count FROM gone
`
// The hours before, so that what one pass did is not read again for days.
export const THIN_SAMPLES = sql('sample:thin')`
  WITH gone AS (
    DELETE FROM unstuck.sample
     WHERE ctid = ANY (ARRAY (
       SELECT s.ctid FROM unstuck.sample s
        WHERE s.at >= ${timestamp('$1')} - interval '3 hours' AND s.at < ${timestamp('$1')} AND NOT s.ended
          AND EXISTS (SELECT FROM unstuck.sample later
                       WHERE later.run_id = s.run_id AND later.at > s.at
                         AND later.at < date_trunc('minute', s.at) + interval '1 minute')
        ORDER BY s.at LIMIT $2))
    RETURNING 1
  )
  SELECT count(*)::int AS count FROM gone
`
/** Samples removed per transaction, so that other writers wait no longer than for a checkpoint. */
const SAMPLES_AT_ONCE = 2_000
const OLD_STATS = sql('worker:old-stats')`
  SELECT id, stats FROM unstuck.worker WHERE stats IS NOT NULL AND ended_at < ${timestamp('$1')}
   ORDER BY id LIMIT $2 FOR UPDATE
`
const KEEP_STATS = sql('worker:keep-stats')`UPDATE unstuck.worker SET stats = $2 WHERE id = $1`
const FORGET_STATS = sql('worker:forget-stats')`
  UPDATE unstuck.worker SET stats = NULL WHERE id = ANY ($1::uuid[])
`
/** Workers whose counters were not added up: a statement in flight when the worker retired may have counted later. */
const UNFOLDED = sql('worker:unfolded')`
  SELECT w.id::text FROM unstuck.worker w
   WHERE w.ended_at < ${timestamp('$1')}
     AND EXISTS (SELECT FROM unstuck.run_counters t WHERE t.writer >= w.id || '/' AND t.writer < w.id || '0')
`
// $1 ended before, $2 settled before, $3 how many of the newest are kept, $4 batch size. Keeps rows with stats, which are
// the sum over all ended workers, rows that a claim or a source lock refers to, and a row that a heartbeat updates now.
const REMOVE_WORKERS = sql('worker:remove')`
  WITH old AS (
    SELECT w.id FROM unstuck.worker w
     WHERE (w.ended_at < ${timestamp('$1')}
            OR w.ended_at < ${timestamp('$2')} AND w.id IN (
              SELECT id FROM unstuck.worker WHERE ended_at IS NOT NULL
               ORDER BY ended_at DESC, id DESC OFFSET $3))
       AND w.stats IS NULL
       AND NOT EXISTS (SELECT FROM unstuck.target t WHERE t.worker_id = w.id AND t.status = 'in_progress')
       AND NOT EXISTS (SELECT FROM unstuck.source_lock g WHERE g.worker_id = w.id)
     LIMIT $4 FOR UPDATE SKIP LOCKED
  ),
  gone AS (DELETE FROM unstuck.worker w USING old WHERE w.id = old.id RETURNING 1)
  SELECT count(*)::int AS count FROM gone
`
export function retentionMethods(db: Database): Pick<Store, 'prune'> {
  return {
    prune: async ({ samplesBefore = 0, minutesBefore = 0, statsBefore = 0, workers }) => {
      const samples =
        samplesBefore > 0 ? await remove(db, REMOVE_SAMPLES, [samplesBefore], SAMPLES_AT_ONCE) : 0
      if (minutesBefore > 0) await remove(db, THIN_SAMPLES, [minutesBefore], SAMPLES_AT_ONCE)
      if (statsBefore > 0) await foldWorkerStats(db, statsBefore)
      return {
        samples,
        workers: workers ? await removeWorkers(db, workers) : 0,
      }
    },
  }
}

async function foldWorkerStats(db: Database, endedBefore: number): Promise<void> {
  for (let found = FOLD_BATCH; found === FOLD_BATCH;) {
    found = await db.transaction('worker:fold-stats', async (connection) => {
      const values = [endedBefore, FOLD_BATCH]
      const rows = await connection.all<{ id: string; stats: unknown }>(OLD_STATS, values)
      const folded = foldStats(rows)
      if (!folded) return 0
      await connection.all(KEEP_STATS, [folded.keeper, folded.sum])
      await connection.all(FORGET_STATS, [folded.others])
      return rows.length
    })
  }
}

async function removeWorkers(db: Database, bounds: EndedWorkerBounds): Promise<number> {
  const { endedBefore, settledBefore, keepNewest } = bounds
  for (const { id } of await db.all<{ id: string }>(UNFOLDED, [settledBefore])) {
    await db.transaction('worker:fold', (connection) => foldCounters(connection, id))
  }
  return remove(db, REMOVE_WORKERS, [endedBefore, settledBefore, keepNewest])
}

const remove = (
  db: Database,
  statement: Sql,
  values: readonly number[],
  batch = DELETE_BATCH,
): Promise<number> =>
  deleteInBatches(
    async () => (await db.all<{ count: number }>(statement, [...values, batch]))[0]!.count,
    batch,
  )
