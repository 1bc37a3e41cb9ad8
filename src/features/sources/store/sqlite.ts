import { recordAudit, sql, type Database } from '../../../core/store/sqlite/kit.ts'
import { sourceEntry, toSourceState, type SourceRow, type SourceStore } from './store.ts'

const PAUSE = sql('source:pause')`
  INSERT INTO source (source, paused_at, paused_because) VALUES (:source, :now, :because)
  ON CONFLICT (source) DO UPDATE
     SET paused_at = excluded.paused_at, paused_because = excluded.paused_because, run_now_at = NULL
   WHERE source.paused_at IS NULL
`
const UNPAUSE = sql('source:unpause')`
  UPDATE source SET paused_at = NULL, paused_because = NULL
   WHERE source = :source AND paused_at IS NOT NULL
`
const RESTART_TIME = sql('source:restart-time')`
  UPDATE run SET resumed_at = :now WHERE source = :source AND status IN ('running', 'interrupted')
`
const NEXT_START = sql('source:next-start')`
  INSERT INTO source (source, next_start_at) VALUES (:source, :at)
  ON CONFLICT (source) DO UPDATE SET next_start_at = excluded.next_start_at, run_now_at = NULL
`
const RUN_NOW = sql('source:run-now')`
  UPDATE source SET run_now_at = coalesce(run_now_at, :now)
   WHERE source = :source AND next_start_at IS NOT NULL AND paused_at IS NULL
`
const LAST_WORK = sql('source:last-work')`
  INSERT INTO source (source, work_command, work_folder, work_host) VALUES (:source, :command, :folder, :host)
  ON CONFLICT (source) DO UPDATE
     SET work_command = excluded.work_command, work_folder = excluded.work_folder, work_host = excluded.work_host
`
const NAMED = sql('sources:named')`
  SELECT * FROM source WHERE source IN (SELECT value FROM json_each(:sources)) ORDER BY source
`
const ALL = sql('sources')`
  SELECT * FROM source WHERE paused_at IS NOT NULL OR next_start_at IS NOT NULL ORDER BY source
`

export function sourceMethods(db: Database): SourceStore {
  return {
    setPaused: (request) =>
      db.write('source:pause', (tx) => {
        const { source, paused, because } = request
        const now = tx.now()
        const changed = paused
          ? tx.run(PAUSE, { source, because, now })
          : tx.run(UNPAUSE, { source })
        if (changed === 0) return false
        if (!paused) tx.run(RESTART_TIME, { source, now })
        recordAudit(tx, sourceEntry(paused ? 'pause' : 'unpause', request))
        return true
      }),

    setNextStart: (source, inMs) =>
      db.write('source:next-start', (tx) => {
        tx.run(NEXT_START, { source, at: inMs === null ? null : tx.now() + Math.round(inMs) })
      }),

    requestRunNow: (request) =>
      db.write('source:run-now', (tx) => {
        const now = tx.now()
        if (tx.run(RUN_NOW, { source: request.source, now }) === 0) return false
        recordAudit(tx, sourceEntry('run-now', request))
        return true
      }),

    setLastWork: (source, { command, folder, host }) =>
      db.write('source:last-work', (tx) => {
        tx.run(LAST_WORK, { source, command, folder, host })
      }),

    sourceStates: async (sources) =>
      db
        .read((tx) =>
          sources === undefined
            ? tx.all<SourceRow>(ALL)
            : tx.all<SourceRow>(NAMED, { sources: JSON.stringify(sources) }),
        )
        .map(toSourceState),
  }
}
