import { commandOn, runName } from '../core/model/traits.ts'
import type { Run } from '../core/model/run.ts'
import { humanizeDuration, iso, type Millis } from '../core/model/time.ts'
import type { Store } from '../core/store/store.ts'
import type { Execution } from '../features/commands/store/store.ts'
import type { Section, Sentence } from '../lib/text/sentence.ts'
import { shellWord } from '../core/model/shell-command.ts'
import { formatAgo, plural } from './format.ts'
import type * as json from './records.ts'
import { isoOrNull } from './view.ts'

/**
 * Returns the ids of the executions that run now, out of those listed newest first. A crawl has one for each of its workers,
 * any other run at most one.
 */
export async function findRunning(
  store: Pick<Store, 'observations'>,
  run: Pick<Run, 'kind' | 'status'>,
  executions: readonly Execution[],
): Promise<ReadonlySet<string>> {
  const candidates = run.kind === 'crawl' ? executions : executions.slice(0, 1)
  const open = run.status === 'running' ? candidates.filter(({ end }) => end === null) : []
  if (open.length === 0 || run.kind !== 'crawl') return new Set(open.map(({ id }) => id))
  const workers = new Set((await store.observations()).map(({ worker }) => worker.id))
  return new Set(open.filter(({ worker }) => workers.has(worker)).map(({ id }) => id))
}

/** One execution of a run's command. `running`: ids of those that run now. */
export function executionView(execution: Execution, running: ReadonlySet<string>): json.Execution {
  const { id, host, command, outputDir, log, startedAt, end } = execution
  return {
    id,
    host,
    command,
    commandLine: command.map(shellWord).join(' '),
    summary: describeExecution(execution, running),
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
  { id, startedAt, end }: Execution,
  running: ReadonlySet<string>,
): string {
  if (!end) return running.has(id) ? 'running' : 'its end was not observed'
  const files = end.artifacts > 0 ? `, ${plural(end.artifacts, 'file')}` : ''
  const memory = end.peakMemory ? `, ${Math.round(end.peakMemory / 1_048_576)} MB at most` : ''
  return `${end.because}, after ${humanizeDuration(end.at - startedAt)}${files}${memory}`
}

/** The executions of its command, oldest first. */
export function executionsSection(facts: {
  readonly run: Run
  readonly executions: readonly Execution[]
  readonly running: ReadonlySet<string>
  readonly now: Millis
}): Section {
  const { run, executions, running, now } = facts
  const all = executions.toReversed().map((execution): Sentence => {
    const { startedAt, command } = execution
    return [
      { text: formatAgo(startedAt, now), style: 'dim' },
      `  ${command.join(' ')}: ${describeExecution(execution, running)}`,
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
