import { DATABASE_FIELDS } from '../../app/config.ts'
import {
  ANYTHING,
  BOOLEAN,
  FUNCTION,
  integerBetween,
  isObject,
  optional,
  problemsIn,
  STRING,
  type Field,
  type Fields,
} from '../../core/model/fields.ts'
import { arrayOf, DURATION, NON_EMPTY_STRING } from '../../lib/validate/fields.ts'
import { LIMITS } from '../../core/model/limits.ts'
import { RUN_STATUSES } from '../../core/model/run.ts'
import { isSchema } from '../../core/model/standard-schema.ts'
import { TARGET_STATUSES } from '../../core/model/target.ts'
import { parseDuration } from '../../core/model/time.ts'

/** The arguments and options of the library. Each call checks all of them before it reads or writes anything. */

const SIGNAL: Field = {
  rule: 'an AbortSignal',
  isValid: (value) => value instanceof AbortSignal,
}
const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$|^[0-9a-f]{8}$/i
const isId = (value: unknown): boolean => typeof value === 'string' && ID.test(value)
const hasId = (value: unknown): boolean => isObject(value) && isId(value['id'])
const hasSource = (value: unknown): boolean =>
  isObject(value) && NON_EMPTY_STRING.isValid(value['source'])

export const RUN: Field = {
  rule: 'an id, its last 8 digits, a source, a run, or { source }',
  isValid: (value) => NON_EMPTY_STRING.isValid(value) || hasId(value) || hasSource(value),
}
export const TARGET: Field = {
  rule: 'an id, its last 8 digits, or a target',
  isValid: (value) => isId(value) || hasId(value),
}
export const SOURCE: Field = {
  rule: 'the name of a source, or an object with it',
  isValid: (value) => NON_EMPTY_STRING.isValid(value) || hasSource(value),
}
export const TARGETS = oneOrMore(TARGET)
export const RUNS = oneOrMore(RUN)

function oneOrMore(field: Field): Field {
  const list = arrayOf(field)
  return {
    rule: `${field.rule}, or a list of them`,
    isValid: (value) => field.isValid(value) || list.isValid(value),
  }
}

function oneOf(names: readonly string[]): Field {
  const isName = (value: unknown): boolean => typeof value === 'string' && names.includes(value)
  return oneOrMore({ rule: `one of ${names.join(', ')}`, isValid: isName })
}

const SINCE: Field = {
  rule: 'a duration like 24h, a time or a Date',
  isValid: (value) =>
    parseDuration(value) !== null ||
    (typeof value === 'string' && !Number.isNaN(Date.parse(value))) ||
    (value instanceof Date && !Number.isNaN(value.getTime())),
}
const SCHEMA: Field = { rule: 'a Standard Schema, as of Zod or Valibot', isValid: isSchema }
const GROUP = optional({
  rule: 'text, or null for none',
  isValid: (value) => value === null || STRING.isValid(value),
})
const TEXT_LIST = optional(arrayOf(STRING))

export const ABORTABLE: Fields = { signal: optional(SIGNAL) }
const ACT: Fields = { ...ABORTABLE, dryRun: optional(BOOLEAN) }
const LIST: Fields = {
  ...ABORTABLE,
  limit: optional(integerBetween(1, 500)),
  after: optional(NON_EMPTY_STRING),
}

export const FIELDS = {
  open: {
    ...DATABASE_FIELDS,
    ...ABORTABLE,
    policy: optional(ANYTHING),
    onEvent: optional(FUNCTION),
    log: optional(FUNCTION),
    signals: optional(BOOLEAN),
  },
  age: { ...ABORTABLE, abandonAfter: optional(DURATION) },
  begin: {
    ...ABORTABLE,
    once: optional(BOOLEAN),
    initialCursor: optional(ANYTHING),
    schema: optional({
      rule: 'an object with item or cursor, each a Standard Schema',
      isValid: (value) =>
        problemsIn(value, { item: optional(SCHEMA), cursor: optional(SCHEMA) }, '').length === 0,
    }),
    policy: optional(ANYTHING),
  },
  enqueue: { ...ABORTABLE, input: optional({ rule: 'any JSON', isValid: isJson }) },
  work: {
    ...ABORTABLE,
    drain: optional(BOOLEAN),
    start: optional(BOOLEAN),
    stopDeadline: optional(DURATION),
  },
  reason: {
    ...ACT,
    because: optional(NON_EMPTY_STRING),
  },
  recover: {
    ...ACT,
    plan: optional(NON_EMPTY_STRING),
    olderThan: optional(DURATION),
    sources: TEXT_LIST,
    groups: TEXT_LIST,
  },
  clean: { ...ACT, plan: optional(NON_EMPTY_STRING), abandonAfter: optional(DURATION) },
  unpark: { ...ACT, targets: optional(arrayOf(TARGET)), groups: TEXT_LIST },
  resetFailed: {
    ...ACT,
    targets: optional(arrayOf(TARGET)),
    groups: TEXT_LIST,
    maxAttempts: optional(integerBetween(1)),
  },
  acknowledge: {
    ...ACT,
    because: optional(NON_EMPTY_STRING),
    undo: optional(BOOLEAN),
    groups: TEXT_LIST,
  },
  rewind: {
    ...ACT,
    to: integerBetween(0),
    next: optional({
      rule: `an address of ${LIMITS.url} bytes at most`,
      isValid: (value) =>
        (NON_EMPTY_STRING.isValid(value) || value instanceof URL) &&
        Buffer.byteLength(String(value)) <= LIMITS.url,
    }),
    cursor: optional({ rule: 'any JSON', isValid: isJson }),
  },
  items: {
    ...LIST,
    run: optional(RUN),
    group: GROUP,
    since: optional(SINCE),
  },
  runs: {
    ...LIST,
    status: optional(oneOf([...RUN_STATUSES, 'live'])),
    source: optional(SOURCE),
    since: optional(SINCE),
  },
  targets: {
    ...LIST,
    status: optional(oneOf(TARGET_STATUSES)),
    group: GROUP,
  },
  workers: { ...ABORTABLE, source: optional(SOURCE) },
  history: {
    ...LIST,
    source: optional(SOURCE),
    run: optional(RUN),
    action: optional(NON_EMPTY_STRING),
    since: optional(SINCE),
  },
} satisfies Record<string, Fields>

function isJson(value: unknown): boolean {
  return !/^(function|symbol|bigint)$/.test(typeof value)
}
