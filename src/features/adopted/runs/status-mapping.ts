import {
  ADOPTED_ACTIONS,
  type AdoptedAction,
  type AdoptedRun,
  type RunStatus,
} from '../../../core/model/run.ts'
import type { TargetStatus } from '../../../core/model/target.ts'
import type { Action } from '../../../core/model/verdict.ts'
import type { AdoptedStatuses, Mapping } from '../mapping.ts'

type StatusKey = keyof AdoptedStatuses

/** What each of the user's words means for a row that is a run. */
const RUN_STATUSES = {
  active: 'running',
  queued: 'queued',
  interrupted: 'interrupted',
  succeeded: 'succeeded',
  failed: 'failed',
  cancelled: 'cancelled',
  abandoned: 'abandoned',
} as const satisfies Partial<Record<StatusKey, RunStatus>>

/** The same for a row that is a target. Of one that was cancelled nothing is left to do, and nobody is to look at it. */
const TARGET_STATUSES = {
  active: 'in_progress',
  planned: 'planned',
  succeeded: 'done',
  failed: 'failed',
  stuck: 'stuck',
  parked: 'parked',
  cancelled: 'done',
  abandoned: 'failed',
} as const satisfies Partial<Record<StatusKey, TargetStatus>>

/**
 * A run's one target, which no row of its own speaks of. Of a run that is running it is at work, whether or not it is
 * known by whom; one that was cancelled or abandoned never got done, as in runs of our own.
 */
const TARGET_STATUS_OF_RUN: Readonly<Record<RunStatus, TargetStatus>> = {
  queued: 'planned',
  running: 'in_progress',
  interrupted: 'planned',
  succeeded: 'done',
  failed: 'failed',
  cancelled: 'planned',
  abandoned: 'planned',
}

export function runStatusOf(mapping: Mapping, statusValue: string): RunStatus {
  return lookUpStatus(RUN_STATUSES, mapping, statusValue) ?? guessEndStatus(statusValue)
}

export function targetStatusOf(mapping: Mapping, statusValue: string): TargetStatus {
  if (mapping.kind === 'runs') return TARGET_STATUS_OF_RUN[runStatusOf(mapping, statusValue)]
  const status = lookUpStatus(TARGET_STATUSES, mapping, statusValue)
  if (status !== null) return status
  const end = guessEndStatus(statusValue)
  return end === 'failed' || end === 'abandoned' ? 'failed' : 'done'
}

/** All words that were mapped to what counts as one of these. Words that nobody mapped are not among them. */
export function statusValuesFor(
  mapping: Mapping,
  statuses: readonly (RunStatus | TargetStatus)[],
): string[] {
  return Object.entries(mapping.kind === 'runs' ? RUN_STATUSES : TARGET_STATUSES)
    .filter(([, status]) => statuses.includes(status))
    .flatMap(([key]) => mapping.statusValues[key as StatusKey])
}

export function isMapped(mapping: Mapping, statusValue: string): boolean {
  return (
    lookUpStatus(mapping.kind === 'runs' ? RUN_STATUSES : TARGET_STATUSES, mapping, statusValue) !==
    null
  )
}

/** Where a verdict leads: the first of these that the user has a word for. */
const RUN_STATUS_AFTER: Readonly<Partial<Record<Action | 'cancel', readonly StatusKey[]>>> = {
  fail: ['failed'],
  park: ['failed'],
  hold: ['failed'],
  retry: ['failed'],
  resume: ['interrupted', 'queued'],
  replan: ['interrupted', 'queued'],
  abandon: ['abandoned', 'failed'],
  cancel: ['cancelled'],
}
const TARGET_STATUS_AFTER: typeof RUN_STATUS_AFTER = {
  fail: ['failed'],
  park: ['parked', 'stuck', 'failed'],
  hold: ['stuck'],
  resume: ['planned'],
  replan: ['planned'],
}

/** What is to be written, or the names in `statuses` of which one has to be mapped for it. */
export function statusValueAfter(
  mapping: Mapping,
  action: Action | 'cancel',
): { value: string } | { missing: readonly StatusKey[] } {
  const keys = (mapping.kind === 'runs' ? RUN_STATUS_AFTER : TARGET_STATUS_AFTER)[action] ?? []
  const statusValue = keys.flatMap((key) => mapping.statusValues[key])[0]
  return statusValue === undefined ? { missing: keys } : { value: statusValue }
}

/** For the log and for people: what to write into the config. */
export function missingStatusMessage(
  { name, kind }: Mapping,
  action: Action | 'cancel',
  missing: readonly string[],
): string {
  const settings = missing.map((key) => `adopted.${name}.statuses.${key}`).join(' or ')
  const what = kind === 'runs' ? 'run' : 'target'
  return settings === ''
    ? `The verdict ${action} does not apply to a ${what} of ${name}`
    : `No status is mapped for ${action} on a ${what} of ${name}: map ${settings} in the config`
}

/** Verdicts that cannot be carried out on its rows, each with what to map. */
export function blockedActions(mapping: Mapping): Readonly<Record<string, string>> {
  const actions = Object.keys(
    mapping.kind === 'runs' ? RUN_STATUS_AFTER : TARGET_STATUS_AFTER,
  ) as Action[]
  return Object.fromEntries(
    actions.flatMap((action) => {
      const found = statusValueAfter(mapping, action)
      return 'missing' in found
        ? [[action, missingStatusMessage(mapping, action, found.missing)]]
        : []
    }),
  )
}

/** The row as a run, or the table (whose key is empty): whose it is, and what can become of it. */
export function adoptedRun(mapping: Mapping, key: string): AdoptedRun {
  const known = ADOPTED_RUNS.get(mapping) ?? describeTable(mapping)
  ADOPTED_RUNS.set(mapping, known)
  return { ...known, key }
}

/** The same for each row of a table, of which there may be very many. */
const ADOPTED_RUNS = new WeakMap<Mapping, Omit<AdoptedRun, 'key'>>()

function describeTable(mapping: Mapping): Omit<AdoptedRun, 'key'> {
  const cannot = blockedActions(mapping)
  const isBlocked = Object.keys(cannot).length > 0
  return { table: mapping.name, can: allowedActions(mapping), ...(isBlocked && { cannot }) }
}

/** What people can have done to its rows. A row that is a run is never set aside; a whole table is never ended. */
function allowedActions(mapping: Mapping): AdoptedAction[] {
  const can = (action: Action | 'cancel'): boolean => 'value' in statusValueAfter(mapping, action)
  const { parked, stuck } = mapping.statusValues
  const canPark = mapping.kind === 'targets' && parked.length + stuck.length > 0
  return ADOPTED_ACTIONS.filter((action) => (action === 'park' ? canPark : can(action)))
}

/** What the word is in one of the tables above. */
function lookUpStatus<Status>(
  statuses: Readonly<Partial<Record<StatusKey, Status>>>,
  { statusValues }: Mapping,
  statusValue: string,
): Status | null {
  const wanted = statusValue.toLowerCase()
  const found = (Object.keys(statuses) as StatusKey[]).find((key) =>
    statusValues[key].some((one) => one.toLowerCase() === wanted),
  )
  return (found && statuses[found]) ?? null
}

/** What nobody mapped has ended, whatever it says: nothing is done to it. Its word only tells how. */
function guessEndStatus(statusValue: string): RunStatus {
  if (/fail|error|crash/i.test(statusValue)) return 'failed'
  if (/time.?out|timed.?out|abandon|clean|expired/i.test(statusValue)) return 'abandoned'
  if (/succe|done|complete|finish|\bok\b/i.test(statusValue)) return 'succeeded'
  return 'cancelled'
}
