import { RefusedError } from '../../../core/model/errors.ts'
import { LIVE_STATUSES, type RunStatus } from '../../../core/model/run.ts'
import type { TargetStatus } from '../../../core/model/target.ts'
import type { RunTraits } from '../../../core/model/traits.ts'
import type { Action } from '../../../core/model/verdict.ts'
import type { AdoptedStatuses, MappedValue, Mapping } from '../mapping.ts'
import type { RowStatus } from '../table/table.ts'

type StatusKey = keyof AdoptedStatuses

/** Run status by mapped meaning. */
const RUN_STATUSES = {
  active: 'running',
  queued: 'queued',
  interrupted: 'interrupted',
  succeeded: 'succeeded',
  failed: 'failed',
  cancelled: 'cancelled',
  abandoned: 'abandoned',
} as const satisfies Partial<Record<StatusKey, RunStatus>>

/** Target status by mapped meaning. A cancelled target needs neither work nor attention, so it is done. */
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

const STATUSES = { runs: RUN_STATUSES, targets: TARGET_STATUSES }

/**
 * The status of a run's one target, which has no row of its own. A cancelled or abandoned run leaves it planned, as in
 * the store's own runs.
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

export function runStatusOf(mapping: Mapping, row: RowStatus): RunStatus {
  return lookUpStatus(RUN_STATUSES, mapping, row) ?? guessEndStatus(row.status)
}

export function targetStatusOf(mapping: Mapping, row: RowStatus): TargetStatus {
  if (mapping.kind === 'runs') return TARGET_STATUS_OF_RUN[runStatusOf(mapping, row)]
  const status = lookUpStatus(TARGET_STATUSES, mapping, row)
  if (status !== null) return status
  const end = guessEndStatus(row.status)
  return end === 'failed' || end === 'abandoned' ? 'failed' : 'done'
}

/** Returns the status of the run or the target that the row is. */
export function statusOf(mapping: Mapping, row: RowStatus): RunStatus | TargetStatus {
  return mapping.kind === 'runs' ? runStatusOf(mapping, row) : targetStatusOf(mapping, row)
}

const ACTIVE: ReadonlySet<RunStatus | TargetStatus> = new Set(['running', 'in_progress'])
const OPEN: typeof ACTIVE = new Set([...LIVE_STATUSES, 'planned', 'in_progress'])

export function isActive(mapping: Mapping, row: RowStatus): boolean {
  return ACTIVE.has(statusOf(mapping, row))
}

/** Returns whether the row has not ended. */
export function isOpen(mapping: Mapping, row: RowStatus): boolean {
  return OPEN.has(statusOf(mapping, row))
}

/** Returns whether rows with this value wait to be claimed. */
export function isWaiting({ statusValues }: Mapping, statusValue: string): boolean {
  const { queued, interrupted, planned } = statusValues
  return [...queued, ...interrupted, ...planned].some((one) => isSameValue(one.value, statusValue))
}

/** Returns all mapped status values that mean one of these. */
export function statusValuesFor(
  mapping: Mapping,
  statuses: readonly (RunStatus | TargetStatus)[],
): MappedValue[] {
  return Object.entries(STATUSES[mapping.kind])
    .filter(([, status]) => statuses.includes(status))
    .flatMap(([key]) => mapping.statusValues[key as StatusKey])
}

export function isMapped(mapping: Mapping, row: RowStatus): boolean {
  return lookUpStatus(STATUSES[mapping.kind], mapping, row) !== null
}

type StatusAction = Action | 'cancel'

/** The status after an action: the first of these that is mapped. */
const STATUS_AFTER: Readonly<
  Record<Mapping['kind'], Partial<Record<StatusAction, readonly StatusKey[]>>>
> = {
  runs: {
    fail: ['failed'],
    park: ['failed'],
    hold: ['failed'],
    retry: ['failed'],
    resume: ['interrupted', 'queued'],
    replan: ['interrupted', 'queued'],
    abandon: ['abandoned', 'failed'],
    cancel: ['cancelled'],
  },
  targets: {
    fail: ['failed'],
    park: ['parked', 'stuck', 'failed'],
    hold: ['stuck'],
    resume: ['planned'],
    replan: ['planned'],
  },
}

/** Returns the status value to write, or a sentence that names the setting that is missing for it. */
export function statusValueAfter(
  mapping: Mapping,
  action: StatusAction,
): { value: string } | { missing: string } {
  return firstMapped(mapping, action, STATUS_AFTER[mapping.kind][action] ?? [])
}

/** Returns the same for an action of an operator. Throws if no status is mapped for it. */
export function requireStatusValue(mapping: Mapping, action: StatusAction): string {
  return valueOrRefuse(statusValueAfter(mapping, action))
}

/** Returns the value of a parked target. Throws if the mapping cannot tell it from a failed one. */
export function requireParkedValue(mapping: Mapping): string {
  return valueOrRefuse(firstMapped(mapping, 'park', ['parked', 'stuck']))
}

function firstMapped(
  { name, kind, statusValues }: Mapping,
  action: StatusAction,
  keys: readonly StatusKey[],
): ReturnType<typeof statusValueAfter> {
  const [first] = keys.flatMap((key) => statusValues[key])
  if (first) return { value: first.value }
  const settings = keys.map((key) => `adopted.${name}.statuses.${key}`).join(' or ')
  const what = kind === 'runs' ? 'run' : 'target'
  const missing =
    settings === ''
      ? `The verdict ${action} does not apply to a ${what} of ${name}`
      : `No status is mapped for ${action} on a ${what} of ${name}: map ${settings} in the config`
  return { missing }
}

function valueOrRefuse(found: ReturnType<typeof statusValueAfter>): string {
  if ('missing' in found) throw new RefusedError(`${found.missing}.`)
  return found.value
}

/** Returns the verdicts that cannot be applied to its rows, each with the setting that would allow it. */
export function blockedActions(mapping: Mapping): Readonly<Record<string, string>> {
  const actions = Object.keys(STATUS_AFTER[mapping.kind]) as StatusAction[]
  return Object.fromEntries(
    actions.flatMap((action) => {
      const found = statusValueAfter(mapping, action)
      return 'missing' in found ? [[action, found.missing]] : []
    }),
  )
}

/** Returns what can be done with a row, or with a whole table if the key is empty. */
export function rowTraits(mapping: Mapping, key: string): RunTraits {
  const traits = TABLE_TRAITS.get(mapping) ?? tableTraits(mapping)
  TABLE_TRAITS.set(mapping, traits)
  return { ...traits, origin: { table: mapping.name, key } }
}

/** Returns the same without `delete`, because a row with an unmapped status may be in use. */
export function unmappedTraits(mapping: Mapping, key: string, statusValue: string): RunTraits {
  const traits = rowTraits(mapping, key)
  const reason = `Row ${key} of ${mapping.name} is not deleted: its status ${JSON.stringify(statusValue)} is not mapped`
  return {
    ...traits,
    actions: traits.actions.filter((action) => action !== 'delete'),
    blocked: { ...traits.blocked, ...deletionBlocked(mapping.deleteBlocked ?? reason) },
  }
}

function deletionBlocked(reason: string | null): RunTraits['blocked'] {
  return reason === null ? {} : { delete: reason }
}

/** Shared by all rows of a table. */
const TABLE_TRAITS = new WeakMap<Mapping, RunTraits>()

function tableTraits(mapping: Mapping): RunTraits {
  const { kind, name } = mapping
  return {
    origin: { table: name, key: '' },
    actions: supportedActions(mapping),
    blocked: { ...blockedActions(mapping), ...deletionBlocked(mapping.deleteBlocked) },
    ownerIsKnown: false,
    isUndated: false,
    continuedBy: 'own-program',
    recoveredBy: 'server',
    alertAfterMs: 2 * 60_000,
    hasTargets: kind === 'targets',
    isOnlyLive: false,
    items: 'items',
    rewindKeepsCursor: false,
  }
}

/** Returns the allowed actions. Rows are never added, a run cannot be parked, and a whole table cannot be cancelled. */
function supportedActions(mapping: Mapping): RunTraits['actions'] {
  const isMapped = (action: StatusAction): boolean => 'value' in statusValueAfter(mapping, action)
  const { parked, stuck } = mapping.statusValues
  const canPark = mapping.kind === 'targets' && parked.length + stuck.length > 0
  return [
    'revert',
    'acknowledge',
    ...(mapping.kind === 'runs' && isMapped('fail') ? (['fail'] as const) : []),
    ...(isMapped('cancel') ? (['cancel'] as const) : []),
    ...(isMapped('resume') ? (['resume', 'reset-failed', 'unpark', 'reset'] as const) : []),
    ...(mapping.kind === 'runs' && mapping.statusValues.queued.length > 0
      ? (['retry'] as const)
      : []),
    ...(canPark ? (['park'] as const) : []),
    ...(mapping.deleteBlocked === null ? (['delete'] as const) : []),
  ]
}

/** Looks the status of a row up in one of the tables above. */
function lookUpStatus<Status>(
  statuses: Readonly<Partial<Record<StatusKey, Status>>>,
  { statusValues }: Mapping,
  row: RowStatus,
): Status | null {
  const isStatusOf = ({ value, hasError }: MappedValue): boolean =>
    isSameValue(value, row.status) && (hasError === null || hasError === row.hasError)
  const found = (Object.keys(statuses) as StatusKey[]).find((key) =>
    statusValues[key].some(isStatusOf),
  )
  return (found && statuses[found]) ?? null
}

function isSameValue(value: string, other: string): boolean {
  return value.toLowerCase() === other.toLowerCase()
}

/** Guesses from its text how a row with an unmapped status has ended. */
function guessEndStatus(statusValue: string): RunStatus {
  if (/fail|error|crash/i.test(statusValue)) return 'failed'
  if (/time.?out|timed.?out|abandon|clean|expired/i.test(statusValue)) return 'abandoned'
  if (/succe|done|complete|finish|\bok\b/i.test(statusValue)) return 'succeeded'
  return 'cancelled'
}
