import * as v from 'valibot'
import { addressMistake } from '../../lib/files/database-address.ts'
import { closest } from '../../core/model/closest.ts'
import { isObject } from '../../core/model/fields.ts'
import type { Policy } from '../../core/model/policy.ts'
import { makePolicy } from '../../lib/validate/policy-options.ts'
import { sourceMistake } from '../../lib/validate/source.ts'
import { didYouMean } from '../../lib/validate/fields.ts'
import { object, validate } from '../../lib/validate/validate.ts'
import {
  TARGET_FIELDS,
  type AdoptedColumns,
  type AdoptedOptions,
  type AdoptedStatuses,
  type MappedValue,
  type Mapping,
  type StatusValue,
} from './mapping.ts'
import { isStatusValue } from './status-values.ts'
import { identifierMistake, splitTableName, tableNameMistake } from './identifiers.ts'

type Field = keyof AdoptedColumns
type Status = keyof AdoptedStatuses

const KINDS = ['runs', 'targets'] as const
const OPTIONAL_COLUMNS = [
  'source',
  'createdAt',
  'startedAt',
  'finishedAt',
  'error',
  'heartbeatAt',
  'activityAt',
  'owner',
  'host',
  'pid',
  'extracted',
  'skipped',
  'done',
  'total',
  'checkpoint',
] as const
/** Written, or used to identify the row: two of them must not share a column. */
const DISTINCT_COLUMNS = [
  'id',
  'status',
  'finishedAt',
  'error',
  'owner',
  'heartbeatAt',
  'pid',
] as const
const END_STATUSES = ['succeeded', 'failed', 'cancelled', 'abandoned'] as const
const STATUSES_BY_KIND: Readonly<Record<Mapping['kind'], readonly Status[]>> = {
  runs: ['active', 'queued', 'interrupted', ...END_STATUSES],
  targets: ['active', 'planned', 'stuck', 'parked', ...END_STATUSES],
}
const STATUSES = [...new Set(Object.values(STATUSES_BY_KIND).flat())]

const COLUMN = v.custom<string>((name) => identifierMistake(name) === null, identifierMistake('')!)
const VALUES_RULE = 'must be a word, a whole number, true or false, or a list of these'
const STATUS = v.custom<AdoptedStatuses['active']>(areStatusValues, VALUES_RULE)
const CALLBACK = v.optional(v.function('must be a function of the row'))
const FOLDER_RULE = 'must be the path of a folder, or left out'

function optional<K extends string, S extends v.GenericSchema>(names: readonly K[], schema: S) {
  return Object.fromEntries(names.map((name) => [name, v.optional(schema)])) as Record<
    K,
    v.OptionalSchema<S, undefined>
  >
}

/** The shape of an entry; what depends on several of its parts is checked apart. */
const ENTRY = object({
  table: v.custom<string>((name) => tableNameMistake(name) === null, tableNameMistake('')!),
  kind: v.optional(
    v.picklist(KINDS, ({ input }) => `must be 'runs' or 'targets'${didYouMean(input, KINDS)}`),
  ),
  db: v.optional(
    v.pipe(
      v.string('must be text, or left out'),
      v.check(
        (address) => addressMistake(address) === null,
        ({ input }) => addressMistake(input)!,
      ),
    ),
  ),
  columns: object({
    id: COLUMN,
    status: COLUMN,
    ...optional([...OPTIONAL_COLUMNS, ...TARGET_FIELDS], COLUMN),
  }),
  statuses: object({ ...optional(STATUSES, STATUS), active: STATUS }),
  checkpoint: CALLBACK,
  outputDir: CALLBACK,
  alive: CALLBACK,
  onResume: CALLBACK,
  filesIn: v.optional(v.pipe(v.string(FOLDER_RULE), v.nonEmpty(FOLDER_RULE))),
  policy: v.optional(v.unknown()),
  delete: v.optional(v.boolean('must be true or false')),
  timeZone: v.optional(
    v.custom<string>(isTimeZone, "must be the name of a time zone, as in 'Europe/Berlin'"),
  ),
})

/** Hand-made heartbeats are slow. */
const DEFAULT_LEASE_MS = 5 * 60_000

/** Returns the path of an entry in the config, for messages. */
export function configPathOf(name: string): string {
  return /^[a-z_$][\w$]*$/i.test(name) ? `adopted.${name}` : `adopted[${JSON.stringify(name)}]`
}

type AddMistake = (what: string) => void

/** Validates one entry of `adopted` without the database; adds to `mistakes`, each with its path in the config. */
export function parseMapping(
  name: string,
  options: unknown,
  base: Policy,
  mistakes: string[],
): Mapping | null {
  const at = configPathOf(name)
  const found = [...validate(ENTRY, options, { whole: at, at }).mistakes]
  const addMistake: AddMistake = (what) => void found.push(`${at}${what}`)
  const given = isObject(options) ? options : {}
  if (sourceMistake(name)) addMistake(`: its name ${sourceMistake(name)}`)
  // A mistyped kind causes no further mistakes.
  const isTargets = typeof given['kind'] === 'string' && closest(given['kind'], KINDS) === 'targets'
  const kind = isTargets ? 'targets' : 'runs'
  const columns = parseColumns(given['columns'], kind, addMistake)
  const statusValues = parseStatuses(given['statuses'], { kind, columns }, addMistake)
  if (columns.checkpoint !== undefined && given['checkpoint'] !== undefined)
    addMistake(`.checkpoint is a function, and columns.checkpoint a column: leave one of them out`)
  if (given['onResume'] !== undefined && !canResume(statusValues))
    addMistake(`.onResume needs ${RESUME_STATUS_HINT}`)
  if (given['delete'] === true && kind === 'targets') addMistake('.delete is of tables of runs')
  const policy = parsePolicy(given['policy'], base, { kind, statusValues }, addMistake)
  mistakes.push(...found)
  if (found.length > 0) return null
  const valid = options as AdoptedOptions
  return {
    name,
    kind,
    ...splitTableName(valid.table),
    db: valid.db ?? null,
    columns,
    statusValues,
    timeZone: valid.timeZone ?? 'UTC',
    hasExplicitTimeZone: valid.timeZone !== undefined,
    policy,
    deleteBlocked: valid.delete
      ? null
      : kind === 'targets'
        ? `${name} is a table of targets, from which nothing is deleted`
        : `Rows of ${name} are not deleted: set ${at}.delete to true in the config to allow it`,
    checkpoint: valid.checkpoint,
    outputDir: valid.outputDir,
    filesIn: valid.filesIn,
    alive: valid.alive,
    onResume: valid.onResume,
  }
}

/** Accepts names only: JavaScript and PostgreSQL read the sign of an offset differently. */
function isTimeZone(name: unknown): boolean {
  if (typeof name !== 'string' || !/^[a-z]/i.test(name)) return false
  try {
    new Intl.DateTimeFormat('en', { timeZone: name }).format()
    return true
  } catch {
    return false
  }
}

function parseColumns(
  given: unknown,
  kind: Mapping['kind'],
  addMistake: AddMistake,
): AdoptedColumns {
  const entries = Object.entries(isObject(given) ? given : {})
  const columns: Partial<Record<Field, unknown>> = Object.fromEntries(
    entries.filter(([, column]) => column !== undefined),
  )
  for (const field of kind === 'runs' ? TARGET_FIELDS : [])
    if (columns[field] !== undefined)
      addMistake(`.columns.${field} is of tables with kind: 'targets'`)
  for (const [at, field] of DISTINCT_COLUMNS.entries()) {
    const other = DISTINCT_COLUMNS.slice(0, at).find((one) => columns[one] === columns[field])
    if (columns[field] !== undefined && other)
      addMistake(`.columns.${field} is the same column as ${other}`)
  }
  if (columns['pid'] !== undefined && columns['host'] === undefined)
    addMistake('.columns.pid needs columns.host: a process id means something on its own host only')
  const { checkpoint, ...others } = columns
  const shared = Object.entries(others).find(([, column]) => column === checkpoint)
  // The snapshot has only a digest of a checkpoint, but the value of the other columns.
  if (checkpoint !== undefined && shared)
    addMistake(`.columns.checkpoint is the same column as ${shared[0]}: it counts there already`)
  return columns as AdoptedColumns
}

type StatusValues = Mapping['statusValues']

const WRONG_KIND_HINTS = {
  runs: "is of tables with kind: 'targets'",
  targets: 'is of tables of runs; targets that wait are planned',
} as const

function parseStatuses(
  given: unknown,
  { kind, columns }: Pick<Mapping, 'kind' | 'columns'>,
  addMistake: AddMistake,
): StatusValues {
  const statuses = isObject(given) ? given : {}
  if (kind === 'targets' && isObject(given) && given['planned'] === undefined)
    addMistake(`.statuses.planned ${VALUES_RULE}`)
  const valuesOf = (status: Status): string[] => {
    const value = statuses[status]
    return areStatusValues(value) ? [value].flat().map(String) : []
  }
  const meanings = new Map<string, Status[]>()
  for (const status of STATUSES) {
    const values = valuesOf(status)
    if (values.length > 0 && !STATUSES_BY_KIND[kind].includes(status))
      addMistake(`.statuses.${status} ${WRONG_KIND_HINTS[kind]}`)
    for (const value of values) {
      const others = (meanings.get(value.toLowerCase()) ?? []).filter((one) => one !== status)
      meanings.set(value.toLowerCase(), [...others, status])
      if (others.length === 0) continue
      const areEnds = others.join() === 'succeeded' && status === 'failed'
      if (areEnds && columns.error !== undefined) continue
      const without = areEnds ? ' without columns.error, which tells such rows apart' : ''
      addMistake(
        `.statuses: ${JSON.stringify(value)} cannot mean both ${others[0]} and ${status}${without}`,
      )
    }
  }
  const toMapped = (value: string, status: Status): MappedValue => {
    const isShared = meanings.get(value.toLowerCase())!.length > 1
    return { value, hasError: isShared ? status === 'failed' : null }
  }
  const mapped = Object.fromEntries(
    STATUSES.map((status) => [status, valuesOf(status).map((value) => toMapped(value, status))]),
  )
  return mapped as Record<Status, MappedValue[]>
}

function areStatusValues(value: unknown): value is StatusValue | StatusValue[] {
  const values: readonly unknown[] = Array.isArray(value) ? value : [value]
  return values.length > 0 && values.every(isStatusValue)
}

const RESUME_STATUS_HINT = 'a word to be written in statuses.interrupted or statuses.queued'

/** Returns whether a status for waiting rows is mapped. */
function canResume({ interrupted, queued, planned }: StatusValues): boolean {
  return interrupted.length + queued.length + planned.length > 0
}

/** Parses the policy of a table. Rows are never added to it, so its runs are not retried. */
function parsePolicy(
  given: unknown,
  base: Policy,
  { kind, statusValues }: Pick<Mapping, 'kind' | 'statusValues'>,
  addMistake: AddMistake,
): Policy {
  const canBeResumed = canResume(statusValues)
  const own: Policy = {
    ...base,
    leaseMs: DEFAULT_LEASE_MS,
    runRetries: 0,
    onCrash: canBeResumed ? base.onCrash : 'fail',
  }
  const { policy, mistakes } = makePolicy(given, own)
  for (const mistake of mistakes) addMistake(`.${mistake}`)
  if (policy.runRetries > 0)
    addMistake('.policy.runRetries must be 0: nothing is ever added to your table')
  for (const option of ['onCrash', 'onStalled'] as const) {
    if (policy[option] === 'resume' && !canBeResumed)
      addMistake(`.policy.${option}: 'resume' needs ${RESUME_STATUS_HINT}`)
  }
  if (policy.onCrash === 'hold' && statusValues.stuck.length === 0) {
    const needs = kind === 'targets' ? 'needs a word in statuses.stuck' : 'is of tables of targets'
    addMistake(`.policy.onCrash: 'hold' ${needs}`)
  }
  return policy
}
