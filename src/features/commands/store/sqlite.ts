import { recordAudit, sql, type Database, type Params } from '../../../core/store/sqlite/kit.ts'
import {
  endedProcessesEntry,
  toExecution,
  type CommandStore,
  type ExecutionEnd,
  type ExecutionRow,
} from './store.ts'

const START = sql('execution:start')`
  INSERT INTO execution (id, run_id, worker_id, host, command, output_dir, log, started_at,
                         ended_at, exit_code, signal, because, artifacts, peak_memory)
  VALUES (:id, :run, :worker, :host, :command, :outputDir, :log, :startedAt,
          :at, :exitCode, :signal, :because, :artifacts, :peakMemory)
  ON CONFLICT (id) DO NOTHING
`
// A command ends once: a second report changes nothing.
const END = sql('execution:end')`
  UPDATE execution SET ended_at = :at, exit_code = :exitCode, signal = :signal, because = :because,
                       artifacts = :artifacts, peak_memory = :peakMemory
   WHERE id = :id AND ended_at IS NULL
`
const LIST = sql('executions')`
  SELECT e.*
    FROM json_each(:runs) r
   CROSS JOIN execution e
   WHERE e.id IN (SELECT id FROM execution WHERE run_id = r.value ORDER BY id DESC LIMIT :limit)
   ORDER BY e.id DESC
`

type SqliteExecutionRow = Omit<ExecutionRow, 'command'> & { command: string }

export function executionMethods(db: Database): CommandStore {
  return {
    startExecution: ({ end, command, ...execution }) =>
      db.write('execution:start', (tx) => {
        tx.run(START, { ...execution, command: JSON.stringify(command), ...endParams(end) })
      }),

    endExecution: (id, end) =>
      db.write('execution:end', (tx) => {
        tx.run(END, { id, ...endParams(end) })
      }),

    executions: async (runs, limit) =>
      db
        .read((tx) => tx.all<SqliteExecutionRow>(LIST, { runs: JSON.stringify(runs), limit }))
        .map((row) => toExecution({ ...row, command: JSON.parse(row.command) as string[] })),

    recordEndedProcesses: (ended) =>
      db.write('execution:ended-processes', (tx) => recordAudit(tx, endedProcessesEntry(ended))),
  }
}

function endParams(end: ExecutionEnd | null): Params {
  return {
    at: end?.at ?? null,
    exitCode: end?.exitCode ?? null,
    signal: end?.signal ?? null,
    because: end?.because ?? null,
    artifacts: end?.artifacts ?? null,
    peakMemory: end?.peakMemory ?? null,
  }
}
