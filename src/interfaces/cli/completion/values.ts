import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { loadSettings } from '../../../app/config.ts'
import type { Database } from '../../../contracts/database.ts'
import { runName } from '../../../core/model/traits.ts'
import { isLive, LIVE_STATUSES, type Run, type RunStatus } from '../../../core/model/run.ts'
import {
  TARGET_STATUSES,
  type DeadLetterStatus,
  type Target,
  type TargetStatus,
} from '../../../core/model/target.ts'
import type { Store } from '../../../core/store/store.ts'
import { parseDuration } from '../../../core/model/time.ts'
import { readDatabaseInfo } from '../../../features/inspection/store/database-info.ts'
import { loadOnce } from '../../../lib/load-once.ts'
import { findRun } from '../../../presenters/find.ts'
import { formatAgo, knownTime, targetRef } from '../../../presenters/format.ts'
import { commandDatabase } from '../execute.ts'
import type { Candidate, TypedLine } from './complete.ts'

type StoredKind = 'sources' | 'runs' | 'targets' | 'groups'
type Kind = StoredKind | 'files' | 'folders'

/**
 * What stands for an argument or the value of a flag, by its name in the help, for one command or for all. An empty list:
 * only the user knows it.
 */
export const VALUES: Readonly<Record<string, readonly Kind[]>> = {
  SOURCE: ['sources'],
  RUN: ['sources', 'runs'],
  RUNS: ['sources', 'runs'],
  TARGET: ['targets'],
  TARGETS: ['targets'],
  WHAT: ['sources', 'runs', 'targets'],
  'enqueue WHAT': ['sources', 'files'],
  GROUP: ['groups'],
  FILE: ['files'],
  FILES: ['sources', 'files'],
  MODULE: ['files'],
  COMMAND: ['files'],
  FOLDER: ['folders'],
  ADDRESS: [],
  AGE: [],
  COLUMN: [],
  CURSOR: [],
  JSON: [],
  N: [],
  'N|all': [],
  NAME: [],
  PAGE: [],
  PATH: [],
  SIZE: [],
  TEXT: [],
  TIME: [],
  TYPE: [],
  URL: [],
  WHEN: [],
  WORDS: [],
  ZONE: [],
}

/** Completion must not make typing wait. A user with a slow database can raise it. */
const TIMEOUT = 'UNSTUCK_COMPLETION_TIMEOUT'
const TIMEOUT_MS = 1_500
/** Runs, targets and groups. */
const LISTED_MAX = 50
/** Runs that are searched for sources. */
const RUNS_MAX = 200

/** Returns the values that the database has; none if it is missing, of another version, or too slow. */
export async function loadValues(
  kinds: readonly Kind[],
  line: TypedLine,
): Promise<readonly Candidate[]> {
  const stored = (['sources', 'runs', 'targets', 'groups'] as const).filter((kind) =>
    kinds.includes(kind),
  )
  if (stored.length === 0) return []
  const cwd = process.cwd()
  const settings = loadOnce(() => loadSettings(cwd))
  const database = commandDatabase(line.db, cwd, settings, () => {})
  const found = readValues(database, stored, line).catch(() => [])
  const timeoutMs = parseDuration(process.env[TIMEOUT] ?? '') ?? TIMEOUT_MS
  const over = sleep(timeoutMs, null, { ref: false })
  const candidates = await Promise.race([found, over])
  // A server that does not respond is not waited for here either: the process exits.
  if (candidates !== null) await database.close().catch(() => {})
  // A name with a leading dash would be taken for a flag.
  return (candidates ?? []).filter(({ value }) => !value.startsWith('-'))
}

async function readValues(
  database: Database,
  kinds: readonly StoredKind[],
  line: TypedLine,
): Promise<Candidate[]> {
  const { engine, version, known } = await readDatabaseInfo(await database.address())
  // Opening would create or migrate it.
  if (engine === null || version !== known) return []
  const store = await database.openAll({ readOnly: true, connections: 1 })
  const lists: Record<StoredKind, () => Promise<Candidate[]>> = {
    sources: async () => sourceCandidates(await runsFor(store, line, RUNS_MAX)),
    runs: async () => runCandidates(await runsFor(store, line, LISTED_MAX), await store.now()),
    targets: () => targetCandidates(store, line),
    groups: () => groupCandidates(store, line),
  }
  const found: Candidate[] = []
  for (const kind of kinds) found.push(...(await lists[kind]()))
  return found
}

/** The statuses of the runs that a command accepts. */
const RUN_STATUSES_OF: Readonly<Record<string, readonly RunStatus[]>> = {
  cancel: LIVE_STATUSES,
  resume: ['failed', 'cancelled', 'abandoned'],
  retry: ['failed', 'cancelled', 'abandoned'],
}

async function runsFor(store: Store, { command }: TypedLine, limit: number): Promise<Run[]> {
  return (await store.runs({ statuses: RUN_STATUSES_OF[command.join(' ')], limit })).items
}

function sourceCandidates(runs: readonly Run[]): Candidate[] {
  const newest = Map.groupBy(runs, ({ source }) => source)
  return [...newest].map(([source, [last, ...older]]) => {
    const live = isLive(last!.status) ? last : older.find(({ status }) => isLive(status))
    const about = live ? `live run ${live.status}` : `last run ${last!.status}`
    return { value: source, about: `source, ${about}` }
  })
}

function runCandidates(runs: readonly Run[], now: number): Candidate[] {
  return runs.map((run) => ({
    value: runName(run),
    about: `${run.source}, ${run.status}, ${formatAgo(knownTime(run, run.createdAt), now)}`,
  }))
}

/** The statuses of the targets that a command changes; any other command is about those that need attention. */
const TARGET_STATUSES_OF: Readonly<Record<string, readonly TargetStatus[]>> = {
  park: ['planned', 'in_progress', 'failed'],
  rewind: TARGET_STATUSES,
}
const DEAD_LETTERS_OF: Readonly<Record<string, readonly DeadLetterStatus[]>> = {
  unpark: ['parked', 'stuck'],
  'reset-failed': ['failed'],
}

async function targetCandidates(store: Store, line: TypedLine): Promise<Candidate[]> {
  const [command = ''] = line.command
  const statuses = TARGET_STATUSES_OF[command]
  const found: Pick<Target, 'id' | 'key' | 'status' | 'origin'>[] = []
  if (statuses) {
    for (const run of await runsOfLine(store, line))
      found.push(...(await store.targets(run.id, { statuses, limit: LISTED_MAX })).items)
  } else {
    const filter = { statuses: DEAD_LETTERS_OF[command], limit: LISTED_MAX }
    found.push(...(await store.deadLetters(filter)).items)
  }
  return found.slice(0, LISTED_MAX).map((target) => ({
    value: targetRef(target),
    about: `${target.key}, ${target.status.replace('_', ' ')}`,
  }))
}

async function groupCandidates(store: Store, line: TypedLine): Promise<Candidate[]> {
  const found = new Map<string, Candidate>()
  for (const run of await runsOfLine(store, line)) {
    for (const { group, counts } of await store.countsByGroup(run.id)) {
      const about = `${run.source}: ${counts.targets.done} done`
      if (group !== null && found.size < LISTED_MAX) found.set(group, { value: group, about })
    }
  }
  return [...found.values()]
}

/** How many runs are searched for targets and groups. */
const SEARCHED_MAX = 5

/** The run that the line names, else live ones and the newest others. */
async function runsOfLine(store: Store, { args }: TypedLine): Promise<Run[]> {
  const run = args[0] === undefined ? null : await findRun(store, args[0]).catch(() => null)
  if (run) return [run]
  const newest = (await store.runs({ limit: LISTED_MAX })).items
  const liveFirst = newest.toSorted((a, b) => Number(isLive(b.status)) - Number(isLive(a.status)))
  return liveFirst.slice(0, SEARCHED_MAX)
}
