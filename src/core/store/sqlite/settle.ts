import { bootId, uptimeMs } from '../../host/identity.ts'
import type { Store } from '../store.ts'
import { sql, type Database } from './database.ts'
import { LIVE } from './runs.ts'

/** A worker that has not ended and beats: measured on the clock that runs from boot. */
const LIVING = /* sql */ `
  w.ended_at IS NULL AND w.boot_id IS :boot AND w.heartbeat_uptime >= :uptime - w.lease_ms
`
const END = sql('settle:end')`
  UPDATE run SET
    status = CASE WHEN EXISTS (SELECT 1 FROM target t WHERE t.run_id = run.id
                                  AND t.status IN ('failed', 'stuck', 'parked'))
                  THEN 'failed' ELSE 'succeeded' END,
    error = (SELECT t.last_error FROM target t WHERE t.run_id = run.id
                AND t.status IN ('failed', 'stuck', 'parked') LIMIT 1),
    finished_at = :now
  WHERE status IN ${LIVE} AND (:run IS NULL OR id = :run) AND planned_at IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM target t WHERE t.run_id = run.id
                       AND t.status IN ('planned', 'in_progress'))
  RETURNING id AS run, status
`
const INTERRUPT = sql('settle:interrupt')`
  UPDATE run SET status = 'interrupted'
  WHERE status = 'running' AND (:run IS NULL OR id = :run)
    AND NOT EXISTS (SELECT 1 FROM target t WHERE t.run_id = run.id AND t.status = 'in_progress')
    AND (kind = 'single' OR :lost OR NOT EXISTS (
          SELECT 1 FROM worker w WHERE w.source = run.source AND ${LIVING}))
  RETURNING id AS run, status
`
/** The interruption is its last activity: the latest of its rows counts. */
const TOUCH = sql('settle:touch')`
  UPDATE run_counters SET last_activity_at = :now
   WHERE run_id = :run AND group_name = (SELECT min(group_name) FROM run_counters WHERE run_id = :run)
`
/** Whether `settle` would change anything, without asking for the write lock. */
const UNSETTLED = sql('settle:candidates')`
  SELECT 1 FROM run
  WHERE status IN ${LIVE} AND (:run IS NULL OR id = :run)
    AND ((planned_at IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM target t WHERE t.run_id = run.id AND t.status IN ('planned', 'in_progress')))
      OR (status = 'running'
          AND NOT EXISTS (SELECT 1 FROM target t WHERE t.run_id = run.id AND t.status = 'in_progress')
          AND (kind = 'single' OR :lost OR NOT EXISTS (
                SELECT 1 FROM worker w WHERE w.source = run.source AND ${LIVING}))))
  LIMIT 1
`

type Settled = Awaited<ReturnType<Store['settle']>>[number]

export function settleMethods(db: Database): Pick<Store, 'settle'> {
  return {
    settle: async (run, lost = false) => {
      const only = { run: run ?? null }
      const living = { boot: bootId(), uptime: uptimeMs(), lost: lost ? 1 : 0 }
      if (!db.read((tx) => tx.get(UNSETTLED, { ...only, ...living }))) return []
      return db.write('settle', (tx) => {
        const now = tx.now()
        const ended = tx.all<Settled>(END, { ...only, now })
        const interrupted = tx.all<Settled>(INTERRUPT, { ...only, ...living })
        for (const one of interrupted) tx.run(TOUCH, { run: one.run, now })
        return [...ended, ...interrupted].map(({ run, status }) => ({ run, status }))
      })
    },
  }
}
