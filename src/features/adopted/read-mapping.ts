import { addressMistake } from '../../core/model/address.ts'
import { closest } from '../../core/model/closest.ts'
import { fields, isObject, meant } from '../../core/model/fields.ts'
import { makePolicy, type Policy } from '../../core/model/policy.ts'
import { sourceMistake } from '../../core/model/source.ts'
import type { AdoptedColumns, AdoptedOptions, AdoptedStatuses, Mapping } from './mapping.ts'
import { nameMistake, splitTable, tableMistake } from './names.ts'

const KINDS = ['runs', 'targets'] as const
const FUNCTIONS = ['checkpoint', 'outputDir', 'alive', 'onResume'] as const
const OPTIONS: readonly (keyof AdoptedOptions)[] = [
  'table',
  'kind',
  'db',
  'columns',
  'statuses',
  ...FUNCTIONS,
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
const OF_TARGETS: readonly (keyof AdoptedColumns)[] = [
  'key',
  'group',
  'url',
  'page',
  'pageTarget',
  'attempts',
]
/** Each is written, or tells the row: two of them in one column would spoil each other. */
const APART: readonly (keyof AdoptedColumns)[] = [
  'id',
  'status',
  'finishedAt',
  'error',
  'owner',
  'heartbeatAt',
]
const ENDS = ['succeeded', 'failed', 'cancelled', 'abandoned'] as const
const MEANINGS = {
  runs: ['active', 'queued', 'interrupted', ...ENDS],
  targets: ['active', 'planned', 'stuck', 'parked', ...ENDS],
} as const satisfies Record<Mapping['kind'], (keyof AdoptedStatuses)[]>

/** Beats that a program of one's own writes are slow. */
const LEASE_MS = 5 * 60_000

/** Where an entry stands in the config, for messages about it. */
export function placeOf(name: string): string {
  return /^[a-z_$][\w$]*$/i.test(name) ? `adopted.${name}` : `adopted[${JSON.stringify(name)}]`
}

/** Checks one entry of `adopted`, without a database: its mistakes are added to the list, each naming where it is. */
export function readMapping(
  name: string,
  options: unknown,
  base: Policy,
  mistakes: string[],
): Mapping | null {
  const place = placeOf(name)
  const wrong: string[] = []
  const say = (what: string): void => void wrong.push(`${place}${what}`)
  const given = fields(place, options, OPTIONS, wrong)
  if (isObject(options)) {
    if (sourceMistake(name)) say(`: its name ${sourceMistake(name)}`)
    const mistake = tableMistake(given['table'])
    if (mistake) say(`.table ${mistake}`)
  }
  const { kind = 'runs', db, timeZone = 'UTC' } = given
  if (!(KINDS as readonly unknown[]).includes(kind))
    say(`.kind must be 'runs' or 'targets'${meant(kind, KINDS)}`)
  checkDb(db, say)
  if (!isTimeZone(timeZone)) say(`.timeZone must be the name of a time zone, as in 'Europe/Berlin'`)
  for (const option of FUNCTIONS) {
    const isRight = given[option] === undefined || typeof given[option] === 'function'
    if (!isRight) say(`.${option} must be a function of the row`)
  }
  const { filesIn } = given
  if (filesIn !== undefined && (typeof filesIn !== 'string' || filesIn === ''))
    say('.filesIn must be the path of a folder, or left out')
  // A mistyped kind is not blamed on everything else too.
  const isTargets = typeof kind === 'string' && closest(kind, KINDS) === 'targets'
  const known = isTargets ? 'targets' : 'runs'
  const columns = isObject(options) ? readColumns(place, given['columns'], known, wrong) : null
  const words = isObject(options) ? readWords(place, given['statuses'], known, wrong) : null
  if (columns?.checkpoint !== undefined && given['checkpoint'] !== undefined)
    say(`.checkpoint is a function, and columns.checkpoint a column: leave one of them out`)
  if (words && given['onResume'] !== undefined && !canResume(words))
    say(`.onResume needs ${WAITING_WORDS}`)
  const policy = readPolicy(place, given['policy'], base, { kind: known, words }, wrong)
  mistakes.push(...wrong)
  if (wrong.length > 0 || !columns || !words) return null
  const right = options as AdoptedOptions
  return {
    name,
    kind: known,
    ...splitTable(right.table),
    db: right.db ?? null,
    columns,
    words,
    timeZone: right.timeZone ?? 'UTC',
    isZoneNamed: right.timeZone !== undefined,
    policy,
    checkpoint: right.checkpoint,
    outputDir: right.outputDir,
    filesIn: right.filesIn,
    alive: right.alive,
    onResume: right.onResume,
  }
}

function checkDb(db: unknown, say: (what: string) => void): void {
  if (db === undefined) return
  if (typeof db !== 'string') return say('.db must be text, or left out')
  const mistake = addressMistake(db)
  if (mistake !== null) say(`.db ${mistake}`)
}

/** By name alone: an offset means one thing to JavaScript and its opposite to PostgreSQL. */
function isTimeZone(name: unknown): boolean {
  if (typeof name !== 'string' || !/^[a-z]/i.test(name)) return false
  try {
    new Intl.DateTimeFormat('en', { timeZone: name }).format()
    return true
  } catch {
    return false
  }
}

function readColumns(
  place: string,
  given: unknown,
  kind: Mapping['kind'],
  wrong: string[],
): AdoptedColumns {
  const names = kind === 'targets' ? [...COLUMNS, ...OF_TARGETS] : COLUMNS
  const path = `${place}.columns`
  const said = { ...fields(path, given, [...COLUMNS, ...OF_TARGETS], wrong) }
  for (const [field, column] of Object.entries(said)) {
    if (column === undefined) delete said[field]
    else if (OF_TARGETS.includes(field as 'key') && kind === 'runs')
      wrong.push(`${path}.${field} is of tables with kind: 'targets'`)
  }
  for (const field of names) {
    const isMissing = said[field] === undefined && field !== 'id' && field !== 'status'
    const mistake = isMissing || !isObject(given) ? null : nameMistake(said[field])
    if (mistake) wrong.push(`${path}.${field} ${mistake}`)
  }
  for (const [at, field] of APART.entries()) {
    const other = APART.slice(0, at).find((one) => said[one] === said[field])
    if (said[field] !== undefined && other)
      wrong.push(`${path}.${field} is the same column as ${other}`)
  }
  const { checkpoint, ...others } = said
  const shared = Object.entries(others).find(([, column]) => column === checkpoint)
  // Of a checkpoint only a digest is kept, of the others what stands there.
  if (checkpoint !== undefined && shared)
    wrong.push(`${path}.checkpoint is the same column as ${shared[0]}: it counts there already`)
  return said as AdoptedColumns
}

type Words = Mapping['words']

function readWords(place: string, given: unknown, kind: Mapping['kind'], wrong: string[]): Words {
  const all = [...new Set([...MEANINGS.runs, ...MEANINGS.targets])]
  const path = `${place}.statuses`
  const said = fields(path, given, all, wrong)
  const isNeeded = (meaning: string): boolean =>
    isObject(given) && (meaning === 'active' || (meaning === 'planned' && kind === 'targets'))
  const read = all.map((meaning): [keyof Words, readonly string[]] => {
    const value = said[meaning]
    const list: unknown[] = Array.isArray(value) ? value : [value]
    if (value === undefined && !isNeeded(meaning)) return [meaning, []]
    if (list.length > 0 && list.every(isWord)) {
      const isOfKind = (MEANINGS[kind] as readonly string[]).includes(meaning)
      if (!isOfKind) wrong.push(`${path}.${meaning} ${OF_OTHER_KIND[kind]}`)
      return [meaning, list]
    }
    wrong.push(`${path}.${meaning} must be a word, or a list of words`)
    return [meaning, []]
  })
  const taken = new Map<string, string>()
  for (const [meaning, words] of read) {
    for (const word of words) {
      const other = taken.get(word.toLowerCase()) ?? meaning
      if (other !== meaning)
        wrong.push(`${path}: ${JSON.stringify(word)} cannot mean both ${other} and ${meaning}`)
      taken.set(word.toLowerCase(), other)
    }
  }
  return Object.fromEntries(read) as Words
}

const OF_OTHER_KIND = {
  runs: "is of tables with kind: 'targets'",
  targets: 'is of tables of runs; targets that wait are planned',
} as const

function isWord(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== ''
}

const WAITING_WORDS = 'a word to be written in statuses.interrupted or statuses.queued'

/** Whether there is a word for what waits to be taken up again. */
function canResume({ interrupted, queued, planned }: Words): boolean {
  return interrupted.length + queued.length + planned.length > 0
}

/** Nothing is ever added to a user's table, so nothing is tried again from nothing there. */
function readPolicy(
  place: string,
  given: unknown,
  base: Policy,
  { kind, words }: { kind: Mapping['kind']; words: Words | null },
  wrong: string[],
): Policy {
  const resumes = words === null || canResume(words)
  const own: Policy = {
    ...base,
    leaseMs: LEASE_MS,
    maxRetries: 0,
    onCrash: resumes ? base.onCrash : 'fail',
  }
  const { policy, mistakes } = makePolicy(given, own)
  wrong.push(...mistakes.map((mistake) => `${place}.${mistake}`))
  const say = (what: string): void => void wrong.push(`${place}.policy.${what}`)
  if (policy.maxRetries > 0) say('maxRetries must be 0: nothing is ever added to your table')
  for (const option of ['onCrash', 'onStalled'] as const) {
    if (policy[option] === 'resume' && !resumes) say(`${option}: 'resume' needs ${WAITING_WORDS}`)
  }
  if (policy.onCrash === 'hold' && words?.stuck.length === 0) {
    const needs = kind === 'targets' ? 'needs a word in statuses.stuck' : 'is of tables of targets'
    say(`onCrash: 'hold' ${needs}`)
  }
  return policy
}
