import { ms, recordAuditEntries, sql, type Database } from '../../../core/store/postgres/kit.ts'
import { sourceEntry, toSourceState, type SourceRow, type SourceStore } from './store.ts'

const PAUSE = sql('source:pause')`
  INSERT INTO unstuck.source AS s (source, paused_at, paused_because) VALUES ($1, clock_timestamp(), $2)
  ON CONFLICT (source) DO UPDATE
     SET paused_at = excluded.paused_at, paused_because = excluded.paused_because, run_now_at = NULL
   WHERE s.paused_at IS NULL
  RETURNING 1
`
const UNPAUSE = sql('source:unpause')`
  UPDATE unstuck.source SET paused_at = NULL, paused_because = NULL
   WHERE source = $1 AND paused_at IS NOT NULL
  RETURNING 1
`
const RESTART_TIME = sql('source:restart-time')`
  UPDATE unstuck.run SET resumed_at = clock_timestamp()
   WHERE source = $1 AND status IN ('running', 'interrupted')
`
const NEXT_START = sql('source:next-start')`
  INSERT INTO unstuck.source (source, next_start_at)
  VALUES ($1, clock_timestamp() + $2::float8 * interval '1 millisecond')
  ON CONFLICT (source) DO UPDATE SET next_start_at = excluded.next_start_at, run_now_at = NULL
`
const RUN_NOW = sql('source:run-now')`
  UPDATE unstuck.source SET run_now_at = coalesce(run_now_at, clock_timestamp())
   WHERE source = $1 AND next_start_at IS NOT NULL AND paused_at IS NULL
  RETURNING 1
`
const LAST_WORK = sql('source:last-work')`
  INSERT INTO unstuck.source (source, work_command, work_folder, work_host) VALUES ($1, $2, $3, $4)
  ON CONFLICT (source) DO UPDATE
     SET work_command = excluded.work_command, work_folder = excluded.work_folder, work_host = excluded.work_host
`
const COLUMNS = /* sql */ `
  source, paused_because, ${ms('paused_at')} AS paused_at, ${ms('next_start_at')} AS next_start_at,
  ${ms('run_now_at')} AS run_now_at, work_command, work_folder, work_host
`
const NAMED = sql('sources:named')`
  SELECT ${COLUMNS} FROM unstuck.source WHERE source = ANY ($1::text[]) ORDER BY source
`
export const SOURCES = sql('sources')`
  SELECT ${COLUMNS} FROM unstuck.source
   WHERE paused_at IS NOT NULL OR next_start_at IS NOT NULL ORDER BY source
`

export function sourceMethods(db: Database): SourceStore {
  return {
    setPaused: (request) =>
      db.transaction('source:pause', async (connection) => {
        const { source, paused, because } = request
        const changed = paused
          ? await connection.all(PAUSE, [source, because])
          : await connection.all(UNPAUSE, [source])
        if (changed.length === 0) return false
        if (!paused) await connection.all(RESTART_TIME, [source])
        await recordAuditEntries(connection, [sourceEntry(paused ? 'pause' : 'unpause', request)])
        return true
      }),

    setNextStart: async (source, inMs) => void (await db.all(NEXT_START, [source, inMs])),

    requestRunNow: (request) =>
      db.transaction('source:run-now', async (connection) => {
        if ((await connection.all(RUN_NOW, [request.source])).length === 0) return false
        await recordAuditEntries(connection, [sourceEntry('run-now', request)])
        return true
      }),

    setLastWork: async (source, { command, folder, host }) =>
      void (await db.all(LAST_WORK, [source, command, folder, host])),

    sourceStates: async (sources) => {
      const rows =
        sources === undefined
          ? await db.all<SourceRow>(SOURCES)
          : await db.all<SourceRow>(NAMED, [sources])
      return rows.map(toSourceState)
    },
  }
}
