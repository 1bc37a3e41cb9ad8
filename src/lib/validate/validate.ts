import * as v from 'valibot'
import { _addIssue as addIssue } from 'valibot'
import { closest } from '../../core/model/closest.ts'
import { describeValue, isObject } from '../../core/model/fields.ts'
import { INTEGER_MAX } from '../../core/model/limits.ts'

export type Schema<T = unknown> = v.BaseSchema<unknown, T, v.BaseIssue<unknown>>

type ValidateOptions = {
  /** Names the value itself, as in `the body`. */
  readonly whole: string
  /** Where the value stands, as in `alerts[2]`, if it is part of something. */
  readonly at?: string
  /** Repeat the rejected values in the messages. Leave it off for values that may be secret or hostile. */
  readonly showsValues?: boolean
}

type Validated<T> =
  | { readonly value: T; readonly mistakes: readonly [] }
  | { readonly value: undefined; readonly mistakes: readonly string[] }

/** Returns what the schema makes of a value, or every mistake in it: each names its place and what is expected there. */
export function validate<S extends Schema>(
  schema: S,
  value: unknown,
  options: ValidateOptions,
): Validated<v.InferOutput<S>> {
  // To valibot an array is an object too.
  if (Array.isArray(value) && 'entries' in schema) {
    return { value: undefined, mistakes: [describeNonObject(schema, value, options, [])] }
  }
  const result = v.safeParse(schema, value, { abortPipeEarly: true })
  const issues = result.issues ?? []
  const unknown = issues.filter((issue) => isUnknownKey(issue) && issue.path!.length > 1)
  const others = issues.filter((issue) => !isUnknownKey(issue))
  const mistakes = [
    ...describeUnknownKeys(schema, value, [], options),
    ...unknown.flatMap(({ path }) => {
      const keys = path!.slice(0, -1).map(({ key }) => key as Key)
      return describeUnknownKeys(schema, path!.at(-1)!.input, keys, options)
    }),
    ...others.map((issue) => describeIssue(schema, issue, options)),
  ]
  if (mistakes.length === 0 && result.success) return { value: result.output, mistakes: [] }
  return { value: undefined, mistakes: [...new Set(mistakes)] }
}

/** Returns the end of a sentence about a name that is not one of these: the probable one, or all of them. */
export function nameHint(name: unknown, names: readonly string[]): string {
  const meant = typeof name === 'string' ? closest(name, names) : null
  return meant === null ? `there are ${names.join(', ') || 'none'}` : `did you mean ${meant}?`
}

/** Returns the first mistakes, and how many more there are. */
export function cutMistakes(mistakes: readonly string[], max: number): readonly string[] {
  const more = mistakes.length - max
  return more > 0 ? [...mistakes.slice(0, max), `${more} more`] : mistakes
}

/** An object with these fields and no others. Unlike valibot's own it refuses arrays. */
export function object<E extends v.ObjectEntries>(entries: E): v.StrictObjectSchema<E, undefined> {
  const schema = v.strictObject(entries)
  return {
    ...schema,
    '~run'(dataset, config) {
      if (!Array.isArray(dataset.value)) return schema['~run'](dataset, config)
      addIssue(schema, 'type', dataset, config)
      return dataset as never
    },
  }
}

// Messages continue the name of the field.
export const text = v.string('must be text')
export const nonEmptyText = textOf('text that is not empty')
export const flag = v.boolean('must be true or false')
export const json = v.unknown()

/** A text that is not empty, under a name of its own. */
export function textOf(rule: string) {
  return v.pipe(v.string(`must be ${rule}`), v.nonEmpty(`must be ${rule}`))
}

export function integerBetween(min: number, max = INTEGER_MAX) {
  const rule = `must be a whole number from ${min} to ${max}`
  return v.pipe(v.number(rule), v.integer(rule), v.minValue(min, rule), v.maxValue(max, rule))
}

type Issue = v.BaseIssue<unknown>
type Key = string | number

function isUnknownKey({ type, expected }: Issue): boolean {
  return type === 'strict_object' && expected === 'never'
}

/** Returns a mistake for each unknown key of the object at a path; valibot reports only the first. */
function describeUnknownKeys(
  schema: Schema,
  value: unknown,
  keys: readonly Key[],
  options: ValidateOptions,
): string[] {
  const found = schemaAt(schema, keys).schema
  if (!('entries' in found) || !isObject(value)) return []
  const names = namesOf(found)
  const where = formatPath(keys, options)
  return Object.keys(value)
    .filter((name) => !names.includes(name))
    .map((name) => {
      const hint = nameHint(name, names)
      return where === ''
        ? `there is no ${describeValue(name)}; ${hint}`
        : `${where} has no ${isPlainName(name) ? name : describeValue(name)}; ${hint}`
    })
}

function describeIssue(schema: Schema, issue: Issue, options: ValidateOptions): string {
  const keys = keysOf(issue)
  const found = schemaAt(schema, keys)
  const isMissing = issue.type === 'strict_object' && issue.expected?.startsWith('"') === true
  const name = formatPath(keys, options) || options.whole
  if (isMissing) {
    const [first] = v.safeParse(found.schema, undefined, { abortPipeEarly: true }).issues ?? []
    return `${name} is missing${first ? `: it ${messageOf(first)}` : ''}`
  }
  if (issue.expected === 'Object')
    return describeNonObject(found.schema, issue.input, options, keys)
  const message = messageOf(issue)
  const isRule = message.startsWith('must be ')
  const orNull = isRule && found.isNullable ? ', or null' : ''
  const value = isRule && options.showsValues ? `, not ${describeValue(issue.input)}` : ''
  return `${name} ${message}${orNull}${value}`
}

function describeNonObject(
  schema: Schema,
  value: unknown,
  options: ValidateOptions,
  keys: readonly Key[],
): string {
  const names = namesOf(schema)
  const name = formatPath(keys, options) || options.whole
  if (!options.showsValues) return `${name} must be an object`
  const found = value === undefined ? 'missing' : describeValue(value)
  return `${name} must be an object with ${names.join(', ') || 'no fields'}, but is ${found}`
}

/** Returns a schema's own message, or one made of what valibot expected. */
function messageOf({ message, expected }: Issue): string {
  if (!message.startsWith('Invalid ')) return message
  return expected === 'Object' ? 'must be an object' : `must be ${expected ?? 'something else'}`
}

function keysOf({ path }: Issue): Key[] {
  return (path ?? []).map(({ key }) => key as Key)
}

/** `items[2].key`, `policies["my shop"]` */
function formatPath(keys: readonly Key[], { at = '' }: ValidateOptions): string {
  return keys.reduce<string>((path, key) => {
    if (typeof key === 'number') return `${path}[${key}]`
    if (!isPlainName(key)) return `${path}[${describeValue(key)}]`
    return path === '' ? key : `${path}.${key}`
  }, at)
}

function isPlainName(name: string): boolean {
  return /^[\w$-]{1,60}$/.test(name)
}

type Found = { readonly schema: Schema; readonly isNullable: boolean }

/** Returns the schema of the value at a path. */
function schemaAt(schema: Schema, keys: readonly Key[]): Found {
  const { schema: own, isNullable } = unwrap(schema)
  const [key, ...rest] = keys
  if (key === undefined) return { schema: own, isNullable }
  const parts = own as { entries?: Record<Key, Schema>; item?: Schema; value?: Schema }
  const next = parts.entries?.[key] ?? parts.item ?? parts.value
  return next ? schemaAt(next, rest) : { schema: own, isNullable: false }
}

function unwrap(schema: Schema, isNullable = false): Found {
  if (!('wrapped' in schema)) return { schema, isNullable }
  return unwrap(schema.wrapped as Schema, isNullable || /null/.test(schema.type))
}

function namesOf(schema: Schema): string[] {
  return 'entries' in schema ? Object.keys(schema.entries as object) : []
}
