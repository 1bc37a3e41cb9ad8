import { commandOn, runName } from '../core/model/traits.ts'
import type { Run } from '../core/model/run.ts'
import { humanizeDuration, iso, type Millis } from '../core/model/time.ts'
import type { Execution } from '../features/commands/store/store.ts'
import type { Section, Sentence } from '../lib/text/sentence.ts'
import { shellWord } from '../core/model/shell-command.ts'
import { formatAgo, plural } from './format.ts'
import type * as json from './records.ts'
import { isoOrNull } from './view.ts'

/** One execution of a run's command. `all`: newest first. */
export function executionView(
  execution: Execution,
  run: Run,
  all: readonly Execution[],
): json.Execution {
  const { id, host, command, outputDir, log, startedAt, end } = execution
  return {
    id,
    host,
    command,
    commandLine: command.map(shellWord).join(' '),
    summary: describeExecution(execution, run, all),
    outputDir,
    log,
    startedAt: iso(startedAt),
    finishedAt: isoOrNull(end?.at ?? null),
    exitCode: end?.exitCode ?? null,
    signal: end?.signal ?? null,
    because: end?.because ?? null,
    artifacts: end?.artifacts ?? null,
    peakMemory: end?.peakMemory ?? null,
  }
}

/** `running`, or how it ended: `exit code 1, after 12 min, 2 files, 184 MB at most`. */
function describeExecution(
  execution: Execution,
  run: Pick<Run, 'status'>,
  [newest]: readonly Execution[],
): string {
  const { startedAt, end } = execution
  if (!end) {
    const isRunning = execution === newest && run.status === 'running'
    return isRunning ? 'running' : 'its end was not observed'
  }
  const files = end.artifacts > 0 ? `, ${plural(end.artifacts, 'file')}` : ''
  const memory = end.peakMemory ? `, ${Math.round(end.peakMemory / 1_048_576)} MB at most` : ''
  return `${end.because}, after ${humanizeDuration(end.at - startedAt)}${files}${memory}`
}

/** The executions of its command, oldest first. */
export function executionsSection(facts: {
  readonly run: Run
  readonly executions: readonly Execution[]
  readonly now: Millis
}): Section {
  const { run, executions, now } = facts
  const all = executions.toReversed().map((execution): Sentence => {
    const { startedAt, command } = execution
    return [
      { text: formatAgo(startedAt, now), style: 'dim' },
      `  ${command.join(' ')}: ${describeExecution(execution, run, executions)}`,
    ]
  })
  const [last] = executions
  return {
    heading: 'Command',
    sentences: [
      ...all,
      [{ text: `Files: ${last!.outputDir} on ${last!.host}`, style: 'dim' }],
      [{ text: `Output: \`${commandOn('logs', runName(run))}\``, style: 'dim' }],
    ],
  }
}
