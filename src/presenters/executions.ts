import { commandOn, runName } from '../core/model/traits.ts'
import type { Run } from '../core/model/run.ts'
import { humanizeDuration, iso, type Millis } from '../core/model/time.ts'
import type { Store } from '../core/store/store.ts'
import { COMMAND_STORE, type Execution } from '../features/commands/store/store.ts'
import type { Section, Sentence } from '../lib/text/sentence.ts'
import { shellWord } from '../core/model/shell-command.ts'
import { formatAgo, plural } from './format.ts'
import type * as json from './records.ts'
import { isoOrNull } from './view.ts'

/** One start of a run's command, as it is listed. */
type ListedExecution = Execution & { readonly isRunning: boolean }

/**
 * Returns the last executions of a run, newest first. A crawl may have one running for each of its workers, any other run
 * has at most one.
 */
export async function loadExecutions(
  store: Store,
  { id, kind, status }: Pick<Run, 'id' | 'kind' | 'status'>,
  limit: number,
): Promise<ListedExecution[]> {
  const executions = await (await store.extend(COMMAND_STORE)).executions([id], limit)
  const isOpen = ({ end }: Execution): boolean => end === null && status === 'running'
  const isCrawl = kind === 'crawl' && executions.some(isOpen)
  const workers = isCrawl ? (await store.observations()).map(({ worker }) => worker.id) : []
  return executions.map((one, n) => {
    const isPresent = isCrawl ? workers.includes(one.worker) : n === 0
    return { ...one, isRunning: isOpen(one) && isPresent }
  })
}

export function executionView(execution: ListedExecution): json.Execution {
  const { id, host, command, outputDir, log, startedAt, end } = execution
  return {
    id,
    host,
    command,
    commandLine: command.map(shellWord).join(' '),
    summary: describeExecution(execution),
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
function describeExecution({ startedAt, end, isRunning }: ListedExecution): string {
  if (!end) return isRunning ? 'running' : 'its end was not observed'
  const files = end.artifacts > 0 ? `, ${plural(end.artifacts, 'file')}` : ''
  const memory = end.peakMemory ? `, ${Math.round(end.peakMemory / 1_048_576)} MB at most` : ''
  return `${end.because}, after ${humanizeDuration(end.at - startedAt)}${files}${memory}`
}

/** The executions of its command, oldest first. */
export function executionsSection(facts: {
  readonly run: Run
  readonly executions: readonly ListedExecution[]
  readonly now: Millis
}): Section {
  const { run, executions, now } = facts
  const all = executions.toReversed().map((execution): Sentence => {
    const { startedAt, command } = execution
    return [
      { text: formatAgo(startedAt, now), style: 'dim' },
      `  ${command.join(' ')}: ${describeExecution(execution)}`,
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
