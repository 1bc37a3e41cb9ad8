import type { EndedWorkerBounds, Store } from '../store.ts'
import { DELETE_BATCH, deleteInBatches, FOLD_BATCH, foldStats } from '../list-rows.ts'
import { sql, type Database, type Sql } from './database.ts'
import { readJson } from './lists.ts'

const REMOVE_SAMPLES = sql('sample:prune')`
  DELETE FROM sample
   WHERE rowid IN (SELECT rowid FROM sample WHERE at < :before ORDER BY at LIMIT :limit)
`
// The hours before, so that what one pass did is not read again for days.
const THIN_SAMPLES = sql('sample:thin')`
  DELETE FROM sample
   WHERE rowid IN (
     SELECT rowid FROM sample
      WHERE at >= :before - 10800000 AND at < :before AND ended = 0
        AND EXISTS (SELECT 1 FROM sample later
                     WHERE later.run_id = sample.run_id AND later.at > sample.at
                       AND later.at < (sample.at / 60000 + 1) * 60000)
      ORDER BY at LIMIT :limit)
`
/** Samples removed per transaction, so that other writers wait no longer than for a checkpoint. */
const SAMPLES_AT_ONCE = 2_000
const OLD_STATS = sql('worker:old-stats')`
  SELECT id, stats FROM worker WHERE stats IS NOT NULL AND ended_at < :endedBefore
   ORDER BY id LIMIT :limit
`
const KEEP_STATS = sql('worker:keep-stats')`UPDATE worker SET stats = :sum WHERE id = :keeper`
const FORGET_STATS = sql('worker:forget-stats')`
  UPDATE worker SET stats = NULL WHERE id IN (SELECT value FROM json_each(:others))
`
/** Keeps rows with stats, which are the sum over all ended workers, and rows that a claim or a source lock refers to. */
const REMOVE_WORKERS = sql('worker:remove')`
  DELETE FROM worker WHERE id IN (
    SELECT w.id FROM worker w
     WHERE (w.ended_at < :endedBefore
            OR w.ended_at < :settledBefore AND w.id IN (
              SELECT id FROM worker WHERE ended_at IS NOT NULL
               ORDER BY ended_at DESC, id DESC LIMIT -1 OFFSET :keepNewest))
       AND w.stats IS NULL
       AND NOT EXISTS (SELECT 1 FROM target t WHERE t.worker_id = w.id AND t.status = 'in_progress')
       AND NOT EXISTS (SELECT 1 FROM source_lock g WHERE g.worker_id = w.id)
     LIMIT :limit)
`
export function retentionMethods(db: Database): Pick<Store, 'prune'> {
  return {
    prune: async ({ samplesBefore = 0, minutesBefore = 0, statsBefore = 0, workers }) => {
      const samples = samplesBefore > 0 ? await removeSamples(db, REMOVE_SAMPLES, samplesBefore) : 0
      if (minutesBefore > 0) await removeSamples(db, THIN_SAMPLES, minutesBefore)
      if (statsBefore > 0) await foldWorkerStats(db, statsBefore)
      return {
        samples,
        workers: workers ? await removeWorkers(db, workers) : 0,
      }
    },
  }
}

const removeSamples = (db: Database, statement: Sql, before: number): Promise<number> =>
  deleteInBatches(
    () => db.write('sample:prune', (tx) => tx.run(statement, { before, limit: SAMPLES_AT_ONCE })),
    SAMPLES_AT_ONCE,
  )

async function foldWorkerStats(db: Database, endedBefore: number): Promise<void> {
  for (let found = FOLD_BATCH; found === FOLD_BATCH;) {
    found = await db.write('worker:fold-stats', (tx) => {
      const params = { endedBefore, limit: FOLD_BATCH }
      const rows = tx.all<{ id: string; stats: string }>(OLD_STATS, params)
      const folded = foldStats(rows.map(({ id, stats }) => ({ id, stats: readJson(stats) })))
      if (!folded) return 0
      tx.run(KEEP_STATS, { keeper: folded.keeper, sum: folded.sum })
      tx.run(FORGET_STATS, { others: JSON.stringify(folded.others) })
      return rows.length
    })
  }
}

const removeWorkers = (db: Database, bounds: EndedWorkerBounds): Promise<number> =>
  deleteInBatches(() =>
    db.write('worker:remove', (tx) => tx.run(REMOVE_WORKERS, { ...bounds, limit: DELETE_BATCH })),
  )
