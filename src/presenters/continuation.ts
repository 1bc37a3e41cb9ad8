import { hostname } from 'node:os'
import { COMMAND_STORE, type Execution } from '../features/commands/store/store.ts'
import { SOURCE_STORE, type LastWork } from '../features/sources/store/store.ts'
import { redact } from '../core/model/redact.ts'
import type { RunId } from '../core/model/id.ts'
import type { Run } from '../core/model/run.ts'
import type { AssessedRun } from '../core/recovery/assess.ts'
import type { ActionContext } from '../core/recovery/context.ts'
import type { Store } from '../core/store/store.ts'
import { inFolder, runCommand } from '../core/model/shell-command.ts'

/** Interrupted runs whose last command is read for one answer; the others name `unstuck explain`. */
const LOOKUPS_MAX = 100

type Reader = Pick<ActionContext, 'store' | 'folder'>

/** What continues a run. */
export type Continuation = {
  readonly command: string
  /** Where it was last started, if that is another host than this one. */
  readonly host: string | null
}

/** What is known about the last start of a run's program. */
export type LastStart = {
  /** The last execution of its command; null if it has none. */
  readonly execution: Pick<Execution, 'command'> | null
  readonly work: LastWork | null
  /** The folder of the reader, if it is known. */
  readonly folder: string | undefined
}

export async function lastExecution(store: Store, run: Run): Promise<Execution | null> {
  return (await loadLastExecutions(store, [run])).get(run.id) ?? null
}

async function loadLastExecutions(
  store: Store,
  runs: readonly Run[],
): Promise<ReadonlyMap<RunId, Execution>> {
  if (runs.length === 0) return new Map()
  const commands = await store.extend(COMMAND_STORE)
  const ids = runs.map(({ id }) => id)
  return new Map((await commands.executions(ids, 1)).map((last) => [last.run, last]))
}

/** Returns how to start what continues a run. */
export function describeContinuation(run: Run, last: LastStart): string {
  if (run.traits.continuedBy === 'own-program')
    return 'It continues when your own program takes it up.'
  const found = continuationOf(run, last)
  const start =
    found === null
      ? 'Start its program again'
      : `Start ${last.execution ? 'it' : 'its worker'} again (\`${found.command}\`${describeHost(found)})`
  const isSaved = run.counts.pages > 0
  return `${start}: ${isSaved ? 'it continues after the last saved page' : 'no page is saved yet'}.`
}

/** `, last started on web1`; empty for this host. */
export function describeHost({ host }: Continuation): string {
  return host === null ? '' : `, last started on ${host}`
}

/** What continues a run; null where a program of the user does. */
export function continuationOf(run: Run, last: LastStart): Continuation | null {
  if (run.traits.continuedBy === 'own-program') return null
  if (last.execution) return { command: runCommand(run.source, last.execution.command), host: null }
  if (run.kind !== 'crawl' || run.traits.items !== 'items') return null
  return workContinuation(last.work, last.folder)
}

/** How a crawl was last worked on: a command that runs in the folder of the reader, or else in any. */
function workContinuation(work: LastWork | null, folder: string | undefined): Continuation {
  if (work === null) return { command: 'unstuck work MODULE', host: null }
  const isHere = work.host === hostname()
  const command =
    isHere && work.folder === folder ? work.command : inFolder(work.folder, work.command)
  return { command, host: isHere ? null : work.host }
}

/** Keeps how this process works on a crawl: the command to name when it has stopped. */
export async function recordWorkCommand(
  store: Store,
  source: string,
  command: string,
): Promise<void> {
  const sources = await store.extend(SOURCE_STORE)
  await sources.setLastWork(source, {
    command,
    folder: redact(process.cwd()),
    host: hostname(),
  })
}

async function loadLastWork(
  store: Store,
  sources: readonly string[],
): Promise<ReadonlyMap<string, LastWork | null>> {
  if (sources.length === 0) return new Map()
  const states = await (await store.extend(SOURCE_STORE)).sourceStates(sources)
  return new Map(states.map(({ source, lastWork }) => [source, lastWork]))
}

export async function loadLastStart(context: Reader, run: Run): Promise<LastStart> {
  return (await loadLastStarts(context, [run]))(run)
}

/** Returns how each of these runs was last started, in two reads. */
async function loadLastStarts(
  { store, folder }: Reader,
  runs: readonly Run[],
): Promise<(run: Run) => LastStart> {
  const of = (kind: Run['kind']): Run[] => runs.filter((run) => run.kind === kind)
  const [executions, work] = await Promise.all([
    loadLastExecutions(store, of('single')),
    loadLastWork(
      store,
      of('crawl').map(({ source }) => source),
    ),
  ])
  return ({ id, source }) => ({
    execution: executions.get(id) ?? null,
    work: work.get(source) ?? null,
    folder,
  })
}

/** Returns what continues each run that needs it. */
export async function loadContinuations(
  context: Reader,
  runs: readonly AssessedRun[],
): Promise<ReadonlyMap<RunId, Continuation>> {
  const interrupted = runs
    .filter(({ health }) => health.state === 'interrupted')
    .slice(0, LOOKUPS_MAX)
    .map(({ run }) => run)
  const lastStartOf = await loadLastStarts(context, interrupted)
  return new Map(
    interrupted.flatMap((run) => {
      const one = continuationOf(run, lastStartOf(run))
      return one === null ? [] : [[run.id, one] as const]
    }),
  )
}
