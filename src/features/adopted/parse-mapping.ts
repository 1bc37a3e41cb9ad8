import { addressMistake } from '../../lib/files/database-address.ts'
import { closest } from '../../core/model/closest.ts'
import { isObject } from '../../core/model/fields.ts'
import { checkFields, didYouMean } from '../../lib/validate/fields.ts'
import { makePolicy, type Policy } from '../../core/model/policy.ts'
import { sourceMistake } from '../../core/model/source.ts'
import type { AdoptedColumns, AdoptedOptions, AdoptedStatuses, Mapping } from './mapping.ts'
import { identifierMistake, splitTableName, tableNameMistake } from './identifiers.ts'

const KINDS = ['runs', 'targets'] as const
const CALLBACKS = ['checkpoint', 'outputDir', 'alive', 'onResume'] as const
const OPTIONS: readonly (keyof AdoptedOptions)[] = [
  'table',
  'kind',
  'db',
  'columns',
  'statuses',
  ...CALLBACKS,
  'filesIn',
  'policy',
  'timeZone',
]
const COLUMNS: readonly (keyof AdoptedColumns)[] = [
  'id',
  'status',
  'source',
  'startedAt',
  'finishedAt',
  'error',
  'heartbeatAt',
  'activityAt',
  'owner',
  'extracted',
  'skipped',
  'done',
  'total',
  'checkpoint',
]
const TARGET_COLUMNS: readonly (keyof AdoptedColumns)[] = [
  'key',
  'group',
  'url',
  'page',
  'pageTarget',
  'attempts',
]
/** Written, or used to identify the row: two of them must not share a column. */
const DISTINCT_COLUMNS: readonly (keyof AdoptedColumns)[] = [
  'id',
  'status',
  'finishedAt',
  'error',
  'owner',
  'heartbeatAt',
]
const END_STATUSES = ['succeeded', 'failed', 'cancelled', 'abandoned'] as const
const STATUSES_BY_KIND = {
  runs: ['active', 'queued', 'interrupted', ...END_STATUSES],
  targets: ['active', 'planned', 'stuck', 'parked', ...END_STATUSES],
} as const satisfies Record<Mapping['kind'], (keyof AdoptedStatuses)[]>

/** Hand-made heartbeats are slow. */
const DEFAULT_LEASE_MS = 5 * 60_000

/** The path of an entry in the config, for messages. */
export function configPathOf(name: string): string {
  return /^[a-z_$][\w$]*$/i.test(name) ? `adopted.${name}` : `adopted[${JSON.stringify(name)}]`
}

/** Validates one entry of `adopted` without the database; adds to `mistakes`, each with its path in the config. */
export function parseMapping(
  name: string,
  options: unknown,
  base: Policy,
  mistakes: string[],
): Mapping | null {
  const configPath = configPathOf(name)
  const entryMistakes: string[] = []
  const addMistake = (what: string): void => void entryMistakes.push(`${configPath}${what}`)
  const given = checkFields(configPath, options, OPTIONS, entryMistakes)
  if (isObject(options)) {
    if (sourceMistake(name)) addMistake(`: its name ${sourceMistake(name)}`)
    const mistake = tableNameMistake(given['table'])
    if (mistake) addMistake(`.table ${mistake}`)
  }
  const { kind = 'runs', db, timeZone = 'UTC' } = given
  if (!(KINDS as readonly unknown[]).includes(kind))
    addMistake(`.kind must be 'runs' or 'targets'${didYouMean(kind, KINDS)}`)
  checkAddress(db, addMistake)
  if (!isTimeZone(timeZone))
    addMistake(`.timeZone must be the name of a time zone, as in 'Europe/Berlin'`)
  for (const option of CALLBACKS) {
    const isValid = given[option] === undefined || typeof given[option] === 'function'
    if (!isValid) addMistake(`.${option} must be a function of the row`)
  }
  const { filesIn } = given
  if (filesIn !== undefined && (typeof filesIn !== 'string' || filesIn === ''))
    addMistake('.filesIn must be the path of a folder, or left out')
  // A mistyped kind causes no further mistakes.
  const isTargets = typeof kind === 'string' && closest(kind, KINDS) === 'targets'
  const tableKind = isTargets ? 'targets' : 'runs'
  const columns = isObject(options)
    ? parseColumns(configPath, given['columns'], tableKind, entryMistakes)
    : null
  const statusValues = isObject(options)
    ? parseStatuses(configPath, given['statuses'], tableKind, entryMistakes)
    : null
  if (columns?.checkpoint !== undefined && given['checkpoint'] !== undefined)
    addMistake(`.checkpoint is a function, and columns.checkpoint a column: leave one of them out`)
  if (statusValues && given['onResume'] !== undefined && !canResume(statusValues))
    addMistake(`.onResume needs ${RESUME_STATUS_HINT}`)
  const policy = parsePolicy(
    configPath,
    given['policy'],
    base,
    { kind: tableKind, statusValues },
    entryMistakes,
  )
  mistakes.push(...entryMistakes)
  if (entryMistakes.length > 0 || !columns || !statusValues) return null
  const valid = options as AdoptedOptions
  return {
    name,
    kind: tableKind,
    ...splitTableName(valid.table),
    db: valid.db ?? null,
    columns,
    statusValues,
    timeZone: valid.timeZone ?? 'UTC',
    hasExplicitTimeZone: valid.timeZone !== undefined,
    policy,
    checkpoint: valid.checkpoint,
    outputDir: valid.outputDir,
    filesIn: valid.filesIn,
    alive: valid.alive,
    onResume: valid.onResume,
  }
}

function checkAddress(db: unknown, addMistake: (what: string) => void): void {
  if (db === undefined) return
  if (typeof db !== 'string') return addMistake('.db must be text, or left out')
  const mistake = addressMistake(db)
  if (mistake !== null) addMistake(`.db ${mistake}`)
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
  configPath: string,
  given: unknown,
  kind: Mapping['kind'],
  mistakes: string[],
): AdoptedColumns {
  const names = kind === 'targets' ? [...COLUMNS, ...TARGET_COLUMNS] : COLUMNS
  const path = `${configPath}.columns`
  const said = { ...checkFields(path, given, [...COLUMNS, ...TARGET_COLUMNS], mistakes) }
  for (const [field, column] of Object.entries(said)) {
    if (column === undefined) delete said[field]
    else if (TARGET_COLUMNS.includes(field as 'key') && kind === 'runs')
      mistakes.push(`${path}.${field} is of tables with kind: 'targets'`)
  }
  for (const field of names) {
    const isMissing = said[field] === undefined && field !== 'id' && field !== 'status'
    const mistake = isMissing || !isObject(given) ? null : identifierMistake(said[field])
    if (mistake) mistakes.push(`${path}.${field} ${mistake}`)
  }
  for (const [at, field] of DISTINCT_COLUMNS.entries()) {
    const other = DISTINCT_COLUMNS.slice(0, at).find((one) => said[one] === said[field])
    if (said[field] !== undefined && other)
      mistakes.push(`${path}.${field} is the same column as ${other}`)
  }
  const { checkpoint, ...others } = said
  const shared = Object.entries(others).find(([, column]) => column === checkpoint)
  // The snapshot has only a digest of a checkpoint, but the value of the other columns.
  if (checkpoint !== undefined && shared)
    mistakes.push(`${path}.checkpoint is the same column as ${shared[0]}: it counts there already`)
  return said as AdoptedColumns
}

type StatusValues = Mapping['statusValues']

function parseStatuses(
  configPath: string,
  given: unknown,
  kind: Mapping['kind'],
  mistakes: string[],
): StatusValues {
  const all = [...new Set([...STATUSES_BY_KIND.runs, ...STATUSES_BY_KIND.targets])]
  const path = `${configPath}.statuses`
  const said = checkFields(path, given, all, mistakes)
  const isNeeded = (status: string): boolean =>
    isObject(given) && (status === 'active' || (status === 'planned' && kind === 'targets'))
  const read = all.map((status): [keyof StatusValues, readonly string[]] => {
    const value = said[status]
    const list: unknown[] = Array.isArray(value) ? value : [value]
    if (value === undefined && !isNeeded(status)) return [status, []]
    if (list.length > 0 && list.every(isStatusValue)) {
      const isAllowed = (STATUSES_BY_KIND[kind] as readonly string[]).includes(status)
      if (!isAllowed) mistakes.push(`${path}.${status} ${WRONG_KIND_HINTS[kind]}`)
      return [status, list]
    }
    mistakes.push(`${path}.${status} must be a word, or a list of words`)
    return [status, []]
  })
  const usedValues = new Map<string, string>()
  for (const [status, values] of read) {
    for (const value of values) {
      const other = usedValues.get(value.toLowerCase()) ?? status
      if (other !== status)
        mistakes.push(`${path}: ${JSON.stringify(value)} cannot mean both ${other} and ${status}`)
      usedValues.set(value.toLowerCase(), other)
    }
  }
  return Object.fromEntries(read) as StatusValues
}

const WRONG_KIND_HINTS = {
  runs: "is of tables with kind: 'targets'",
  targets: 'is of tables of runs; targets that wait are planned',
} as const

function isStatusValue(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== ''
}

const RESUME_STATUS_HINT = 'a word to be written in statuses.interrupted or statuses.queued'

/** Whether a status for waiting rows is mapped. */
function canResume({ interrupted, queued, planned }: StatusValues): boolean {
  return interrupted.length + queued.length + planned.length > 0
}

/** Rows are never added to a user's table, so runs are not retried. */
function parsePolicy(
  configPath: string,
  given: unknown,
  base: Policy,
  { kind, statusValues }: { kind: Mapping['kind']; statusValues: StatusValues | null },
  policyMistakes: string[],
): Policy {
  const canBeResumed = statusValues === null || canResume(statusValues)
  const own: Policy = {
    ...base,
    leaseMs: DEFAULT_LEASE_MS,
    runRetries: 0,
    onCrash: canBeResumed ? base.onCrash : 'fail',
  }
  const { policy, mistakes } = makePolicy(given, own)
  policyMistakes.push(...mistakes.map((mistake) => `${configPath}.${mistake}`))
  const addMistake = (what: string): void =>
    void policyMistakes.push(`${configPath}.policy.${what}`)
  if (policy.runRetries > 0) addMistake('runRetries must be 0: nothing is ever added to your table')
  for (const option of ['onCrash', 'onStalled'] as const) {
    if (policy[option] === 'resume' && !canBeResumed)
      addMistake(`${option}: 'resume' needs ${RESUME_STATUS_HINT}`)
  }
  if (policy.onCrash === 'hold' && statusValues?.stuck.length === 0) {
    const needs = kind === 'targets' ? 'needs a word in statuses.stuck' : 'is of tables of targets'
    addMistake(`onCrash: 'hold' ${needs}`)
  }
  return policy
}
