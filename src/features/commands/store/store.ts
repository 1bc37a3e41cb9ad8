import type { RunId, WorkerId } from '../../../core/model/id.ts'
import { LIMITS } from '../../../core/model/limits.ts'
import { redactArguments } from '../../../lib/text/redact-arguments.ts'
import type { Millis } from '../../../core/model/time.ts'
import type { StoreExtension } from '../../../core/store/store.ts'
import { storedText } from '../../../core/store/stored-text.ts'

/** One start of a run's command. A resumed run has several. */
export type Execution = {
  /** A UUIDv7: the newest sorts last. */
  readonly id: string
  readonly run: RunId
  readonly worker: WorkerId
  readonly host: string
  readonly command: readonly string[]
  readonly outputDir: string
  readonly log: string
  readonly startedAt: Millis
  readonly end: ExecutionEnd | null
}

export type ExecutionEnd = {
  readonly at: Millis
  /** Null if a signal ended it, or it never started. */
  readonly exitCode: number | null
  readonly signal: string | null
  /** What ended it, as a sentence: its own exit, a stop, a limit, probably no memory. */
  readonly because: string
  /** Files in its output directory. */
  readonly artifacts: number
  /** Of the whole process tree, in bytes; null where the system does not report it. */
  readonly peakMemory: number | null
}

export interface CommandStore {
  startExecution(execution: Execution): Promise<void>
  /** Records the end once: a second call changes nothing. */
  endExecution(id: string, end: ExecutionEnd): Promise<void>
  /** Returns the last executions of these runs, newest first: at most `limit` of each run. */
  executions(runs: readonly RunId[], limit: number): Promise<Execution[]>
  /** Records in the audit trail of a run that processes of its command were ended. */
  recordEndedProcesses(ended: EndedProcesses): Promise<void>
}

export type EndedProcesses = {
  readonly run: RunId
  readonly source: string
  readonly actor: string
  /** Names the processes. */
  readonly because: string
}

export const COMMAND_STORE: StoreExtension<CommandStore> = {
  sqlite: async () => (await import('./sqlite.ts')).executionMethods,
  postgres: async () => (await import('./postgres.ts')).executionMethods,
  clean: (store) => ({
    startExecution: (execution) =>
      store.startExecution({ ...execution, command: cleanCommand(execution.command) }),
    endExecution: (id, end) => store.endExecution(id, { ...end, because: storedText(end.because) }),
    recordEndedProcesses: (ended) =>
      store.recordEndedProcesses({ ...ended, because: storedText(ended.because) }),
  }),
}

const ARGUMENTS_MAX = 100

/** Keeps the program and its first arguments; a command line may hold megabytes. */
function cleanCommand(command: readonly string[]): string[] {
  const parts = redactArguments(command.slice(0, ARGUMENTS_MAX))
  const bytesMax = Math.floor(LIMITS.evidence / Math.max(1, parts.length))
  const kept = parts.map((part) => storedText(part, Math.max(bytesMax, LIMITS.refusedBody / 8)))
  const left = command.length - kept.length
  return left > 0 ? [...kept, `… (cut; ${left} more arguments)`] : kept
}

export function endedProcessesEntry(ended: EndedProcesses) {
  const nothing = { target: null, evidence: null, before: {}, after: {} }
  return { ...ended, ...nothing, action: 'end-processes' }
}

// — Rows of both engines —

export type ExecutionRow = {
  id: string
  run_id: string
  worker_id: string
  host: string
  command: readonly string[]
  output_dir: string
  log: string
  started_at: number
  ended_at: number | null
  exit_code: number | null
  signal: string | null
  because: string | null
  artifacts: number | null
  peak_memory: number | null
}

export function toExecution(row: ExecutionRow): Execution {
  return {
    id: row.id,
    run: row.run_id,
    worker: row.worker_id,
    host: row.host,
    command: row.command,
    outputDir: row.output_dir,
    log: row.log,
    startedAt: row.started_at,
    end:
      row.ended_at === null
        ? null
        : {
            at: row.ended_at,
            exitCode: row.exit_code,
            signal: row.signal,
            because: row.because ?? '',
            artifacts: row.artifacts ?? 0,
            peakMemory: row.peak_memory,
          },
  }
}
