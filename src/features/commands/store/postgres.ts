import {
  ms,
  recordAuditEntries,
  sql,
  stripNul,
  stripNulJson,
  timestamp,
  type Database,
} from '../../../core/store/postgres/kit.ts'
import {
  endedProcessesEntry,
  toExecution,
  type CommandStore,
  type ExecutionEnd,
  type ExecutionRow,
} from './store.ts'

const START = sql('execution:start')`
  INSERT INTO unstuck.execution (id, run_id, worker_id, host, command, output_dir, log, started_at,
                                 ended_at, exit_code, signal, because, artifacts, peak_memory)
  VALUES ($1, $2, $3, $4, $5, $6, $7, ${timestamp('$8')}, ${timestamp('$9')}, $10, $11, $12, $13, $14)
  ON CONFLICT (id) DO NOTHING
`
// A command ends once: a second report changes nothing.
const END = sql('execution:end')`
  UPDATE unstuck.execution
     SET ended_at = ${timestamp('$2')}, exit_code = $3, signal = $4, because = $5, artifacts = $6,
         peak_memory = $7
   WHERE id = $1 AND ended_at IS NULL
`
const LIST = sql('executions')`
  SELECT id, run_id, worker_id, host, command, output_dir, log, exit_code, signal, because, artifacts,
         peak_memory, ${ms('started_at')} AS started_at, ${ms('ended_at')} AS ended_at
    FROM unnest($1::uuid[]) AS named (run)
   CROSS JOIN LATERAL (
     SELECT * FROM unstuck.execution WHERE run_id = named.run ORDER BY id DESC LIMIT $2
   ) AS e
   ORDER BY id DESC
`

export function executionMethods(db: Database): CommandStore {
  return {
    startExecution: async ({ id, run, worker, host, command, outputDir, log, startedAt, end }) => {
      const words = stripNulJson(command)
      const places = [stripNul(outputDir), stripNul(log)]
      const values = [id, run, worker, host, words, ...places, startedAt, ...endValues(end)]
      await db.all(START, values)
    },

    endExecution: async (id, end) => void (await db.all(END, [id, ...endValues(end)])),

    executions: async (runs, limit) =>
      (await db.all<ExecutionRow>(LIST, [runs, limit])).map(toExecution),

    recordEndedProcesses: (ended) =>
      db.transaction('execution:ended-processes', (connection) =>
        recordAuditEntries(connection, [endedProcessesEntry(ended)]),
      ),
  }
}

function endValues(end: ExecutionEnd | null): unknown[] {
  if (end === null) return [null, null, null, null, null, null]
  const { at, exitCode, signal, because, artifacts, peakMemory } = end
  return [at, exitCode, signal, stripNul(because), artifacts, peakMemory]
}
