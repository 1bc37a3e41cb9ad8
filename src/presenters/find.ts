import { refuseResume } from '../operator/refusals.ts'
import { closest } from '../core/model/closest.ts'
import {
  AmbiguousIdError,
  NotFoundError,
  StoreUnavailableError,
  UsageError,
} from '../core/model/errors.ts'
import { isId, isIdEnding, shortId, type Id, type RunId } from '../core/model/id.ts'
import { isLive, LIVE_STATUSES, type Run, type RunStatus } from '../core/model/run.ts'
import type { Target } from '../core/model/target.ts'
import { rowName, runName } from '../core/model/traits.ts'
import { assessSourceLock } from '../core/recovery/source-lock.ts'
import type { Store } from '../core/store/store.ts'
import { unstuckCommand } from '../core/model/shell-command.ts'
import { sourceMistake } from '../lib/validate/source.ts'
import { SOURCE_STORE } from '../features/sources/store/store.ts'
import { sentenceCase } from './format.ts'
import { currentStates, describeState, type SourceReport } from './sources.ts'

/** Resolves what an operator gives for a run or a target, for all interfaces. */

const RUNS_HINT = '`unstuck runs` lists them.'

/** Finds a target by its id. Short ids are searched among all targets. */
export async function findTarget(store: Store, text: string): Promise<Target> {
  const hint = '`unstuck targets RUN` lists those of a run.'
  const target = await targetById(store, text)
  if (!target && !isIdEnding(text)) {
    throw new UsageError(
      `${JSON.stringify(text)} is not the id of a target: give its last 8 digits, or all of it. ${hint}`,
    )
  }
  if (!target) throw new NotFoundError(`target ${text}`, hint)
  return target
}

/** Finds several targets; one that is named twice is returned once. */
export async function findTargets(store: Store, texts: readonly string[]): Promise<Target[]> {
  const found = new Map<string, Target>()
  for (const text of texts) {
    const target = await findTarget(store, text)
    found.set(target.id, target)
  }
  return [...found.values()]
}

/**
 * Finds a run to read: by its id, or by its source, which stands for its live run, else its last. `command`: what is
 * printed for each where both match.
 */
export async function findRun(store: Store, text: string, command = 'show'): Promise<Run> {
  return (await resolveRun(store, text, command)).run
}

/** Finds the run, or else the target, with this id, or the run of a source. */
export async function findRunOrTarget(
  store: Store,
  text: string,
  command = 'explain',
): Promise<Run | Target> {
  const byId = (await runById(store, text, command)) ?? (await targetById(store, text))
  const found = await idOrSource(store, text, command, byId)
  if (!found) throw await notFound(store, 'run or target', text)
  return found
}

/**
 * Finds a run that `command` is to change: by its id, or by its source, which stands for its live run. For `resume` it
 * stands for the last run that can be resumed.
 */
export async function findRunToChange(store: Store, text: string, command: string): Promise<Run> {
  const { run, isById } = await resolveRun(store, text, command)
  return isById ? run : runToChange(store, run, command)
}

/** Returns how a run is named; by the end of its id, if it cannot be read. */
export async function readRunName(store: Store, id: RunId): Promise<string> {
  const run = await store.run(id).catch(() => null)
  return run ? runName(run) : shortId(id)
}

/** Finds the run of a source to read: its live run, else its last. */
export async function findRunOfSource(store: Store, source: string): Promise<Run> {
  const run = await currentRun(store, source)
  if (!run) throw await notFound(store, 'run', source)
  return run
}

/** Finds the run of a source that `command` is to change. */
export async function findRunOfSourceToChange(
  store: Store,
  source: string,
  command: string,
): Promise<Run> {
  return runToChange(store, await findRunOfSource(store, source), command)
}

/** Returns an error for a source that has no run, with the one that was probably meant. */
export async function unknownSource(store: Store, source: string): Promise<NotFoundError> {
  return new NotFoundError(`source ${source}`, await sourceHint(store, source))
}

/** Reads a source. A next start that a killed supervisor left behind counts for nothing. */
export async function loadSource(store: Store, source: string): Promise<SourceReport> {
  const found = await findSource(store, source)
  if (found === null) throw await unknownSource(store, source)
  return found
}

async function findSource(store: Store, source: string): Promise<SourceReport | null> {
  const [states, locks, live, last] = await Promise.all([
    store.extend(SOURCE_STORE).then((sources) => sources.sourceStates([source])),
    store.sourceLocks(source),
    store.liveRun(source),
    store.runs({ source, limit: 1 }),
  ])
  const run = live ?? last.items[0] ?? null
  if (run === null && states.length === 0 && locks.length === 0) return null
  const observations = states[0]?.nextStartAt ? await store.observations() : []
  const [state] = currentStates(
    states,
    locks.map((lock) => assessSourceLock(lock, observations)),
  )
  const unknown = { source, paused: null, nextStartAt: null, isRunNow: false, lastWork: null }
  return { run, state: state ?? unknown }
}

async function resolveRun(
  store: Store,
  text: string,
  command: string,
): Promise<{ readonly run: Run; readonly isById: boolean }> {
  const byId = await runById(store, text, command)
  const run = await idOrSource(store, text, command, byId)
  if (!run) throw await notFound(store, 'run', text)
  return { run, isById: run === byId }
}

/** Returns what has the id, else the run of the source. Throws where both match, unless the id is given in full. */
async function idOrSource<T extends Run | Target>(
  store: Store,
  text: string,
  command: string,
  byId: T | null,
): Promise<T | Run | null> {
  if (byId?.id === text.toLowerCase()) return byId
  const bySource = await currentRun(store, text)
  if (!byId || !bySource || byId.id === bySource.id) return byId ?? bySource
  const what = 'source' in byId ? 'run' : 'target'
  const describe = (commandFor: (name: string) => string): string =>
    `${text} is ${byId.id.endsWith(text.toLowerCase()) ? 'the end of ' : ''}the id of a ${what}, and also a source.\n` +
    `For the ${what}: \`${commandFor(fullName(byId, text))}\`\n` +
    `For the source: \`${commandFor(fullName(bySource, text))}\``
  throw new AmbiguousIdError(text, describe, command)
}

/** Names one thing: with its table, where it is a row of your own. */
function fullName(found: Run | Target, text: string): string {
  const name = rowName(('source' in found ? found.traits.origin : found.origin) ?? null)
  return name === null || name === text ? found.id : name
}

async function runById(store: Store, text: string, command: string): Promise<Run | null> {
  return findById(store, text, { kind: 'run', command, read: (id) => store.run(id) })
}

async function targetById(store: Store, text: string, command = 'explain'): Promise<Target | null> {
  return findById(store, text, { kind: 'target', command, read: (id) => store.target(id) })
}

/** Finds it by its id, the end of its id, or the own id of its row. */
async function findById<T extends Run | Target>(
  store: Store,
  text: string,
  { kind, command, read }: { kind: 'run' | 'target'; command: string; read: Read<T> },
): Promise<T | null> {
  const id = text.toLowerCase()
  const known = isId(id) ? await read(id) : null
  if (known) return known
  const ids = await store.idsEnding(isIdEnding(text) && !isId(id) ? id : text, kind)
  const found = (await Promise.all(ids.map(read))).filter((one) => one !== null)
  if (found.length < 2) return found[0] ?? null
  const describe = (commandFor: (name: string) => string): string => {
    const commands = found.map((one) => `\`${commandFor(fullName(one, text))}\``)
    return `Several ${kind}s have the id ${text}. Give it in full:\n${commands.join('\n')}`
  }
  throw new AmbiguousIdError(text, describe, command)
}

type Read<T> = (id: Id) => Promise<T | null>

async function currentRun(store: Store, source: string): Promise<Run | null> {
  if (sourceMistake(source) !== null) return null
  return (await store.liveRun(source)) ?? (await runsOf(store, source, 1))[0] ?? null
}

async function runsOf(
  store: Store,
  source: string,
  limit: number,
  statuses?: readonly RunStatus[],
): Promise<Run[]> {
  return (await store.runs({ source, statuses, limit })).items
}

/** Commands that also change a run that has ended: it is given by its id, so that no wrong one is taken. */
const CHANGE_ENDED: readonly string[] = ['retry', 'revert', 'reset-failed', 'unpark --run']

/** How many ended runs of a source are searched for one that can be resumed. */
const ENDED_MAX = 50

async function runToChange(store: Store, run: Run, command: string): Promise<Run> {
  const { source, status } = run
  if (isLive(status)) {
    // A table of the user's own may have several.
    const [, another] = run.traits.isOnlyLive ? [] : await runsOf(store, source, 2, LIVE_STATUSES)
    if (!another) return run
    throw new UsageError(
      `${source} has several live runs: give the id of one. \`${unstuckCommand('runs', [], { source })}\` lists them.`,
    )
  }
  if (command !== 'resume') {
    const last = `Its last run, ${runName(run)}, is ${status}`
    const next = CHANGE_ENDED.includes(command) && status !== 'succeeded' ? command : 'show'
    throw new NotFoundError(
      `live run of ${source}`,
      `${last}: \`${unstuckCommand(next, [runName(run)])}\`.`,
    )
  }
  const ended = await runsOf(store, source, ENDED_MAX)
  const resumable = ended.find(
    (one) =>
      one.status !== 'succeeded' &&
      refuseResume(one) === null &&
      (one.traits.origin === null || one.traits.actions.includes('resume')),
  )
  // The action reports why its last run cannot be resumed.
  return resumable ?? run
}

async function notFound(store: Store, what: string, text: string): Promise<Error> {
  const [unreadable] = store.unreadable
  if (unreadable) {
    return new StoreUnavailableError(
      `${text} is not found; it may be in the table ${unreadable.table}, which cannot be read: ${unreadable.because}`,
    )
  }
  const known = sourceMistake(text) === null ? await findSource(store, text) : null
  if (known !== null) {
    const state = describeState(known.state, await store.now()) ?? 'it has not been started'
    return new NotFoundError(`run of ${text} yet`, `${sentenceCase(state)}.`)
  }
  if (isIdEnding(text)) return new NotFoundError(`${what} ${text}`, RUNS_HINT)
  if (/^[0-9a-f]{4,7}$/i.test(text))
    return new NotFoundError(`${what} ${text}`, `An id is given by its last 8 digits. ${RUNS_HINT}`)
  return new NotFoundError(
    `${what.replace(' or ', ', ')} or source ${text || '""'}`,
    await sourceHint(store, text),
  )
}

const SOURCES_MAX = 200

async function sourceHint(store: Store, source: string): Promise<string> {
  // An id of ours would be searched in whole tables.
  const row = isIdEnding(source) ? null : await rowNamed(store, source)
  if (row !== null)
    return `It is the id of a row of yours: \`${unstuckCommand('explain', [row])}\`.`
  const hint = await similarSource(store, source)
  return hint ? `Did you mean ${hint}?` : RUNS_HINT
}

/** Returns the name of the row of a table of your own with this id, where a run or a source was asked for. */
async function rowNamed(store: Store, text: string): Promise<string | null> {
  const [run] = await store.idsEnding(text, 'run')
  if (run !== undefined) return rowName((await store.run(run))?.traits.origin ?? null)
  const [target] = await store.idsEnding(text, 'target')
  return target === undefined ? null : rowName((await store.target(target))?.origin ?? null)
}

/** Returns the other source with the most similar name, of the newest runs. */
export async function similarSource(store: Store, source: string): Promise<string | null> {
  const newest = (await store.runs({ limit: SOURCES_MAX })).items
  const others = newest.map((run) => run.source).filter((one) => one !== source)
  return closest(source, others)
}
