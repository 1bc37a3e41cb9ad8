import { closest } from './closest.ts'
import type { Problem } from './error-data.ts'
import { UsageError } from './errors.ts'
import { INTEGER_MAX } from './limits.ts'

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** What may stand in one field. */
export type Field = {
  /** Completes “… must be”. */
  readonly rule: string
  readonly isValid: (value: unknown) => boolean
  readonly isOptional?: true
}
export type Fields = Readonly<Record<string, Field>>

export const ANYTHING: Field = { rule: 'anything', isValid: () => true }
export const BOOLEAN: Field = {
  rule: 'true or false',
  isValid: (value) => typeof value === 'boolean',
}
export const FUNCTION: Field = {
  rule: 'a function',
  isValid: (value) => typeof value === 'function',
}
export const STRING: Field = { rule: 'text', isValid: (value) => typeof value === 'string' }
export const NON_NEGATIVE_INTEGER: Field = {
  rule: `a whole number from 0 to ${Number.MAX_SAFE_INTEGER}`,
  isValid: (value) => Number.isSafeInteger(value) && (value as number) >= 0,
}
export function integerBetween(from: number, max = INTEGER_MAX): Field {
  return {
    rule: `a whole number from ${from} to ${max}`,
    isValid: (value) =>
      Number.isInteger(value) && (value as number) >= from && (value as number) <= max,
  }
}

export function nullable({ rule, isValid }: Field): Field {
  return { rule: `${rule}, or null`, isValid: (value) => value === null || isValid(value) }
}

export function optional(field: Field): Field {
  return { ...field, isOptional: true }
}

/** Returns every mistake, not only the first. `whole`: what it is; `at`: its path, for a part of something. */
export function mistakesIn(value: unknown, fields: Fields, whole: string, at?: string): string[] {
  return problemsIn(value, fields, whole, at).map(({ message }) => message)
}

/** Returns the same with the path of each, and the name that was probably meant. */
export function problemsIn(value: unknown, fields: Fields, whole: string, at?: string): Problem[] {
  if (!isObject(value)) {
    const found = value === undefined ? 'is missing' : `is ${describeValue(value)}`
    const message = `${at ?? whole} must be an object with ${listNames(fields)}, but ${found}`
    return [{ path: at ?? '', message, hint: null }]
  }
  const path = (name: string): string => (at === undefined ? name : `${at}.${name}`)
  const unknown = Object.keys(value)
    .filter((name) => !Object.hasOwn(fields, name))
    .map((name) => {
      const hint = closest(name, Object.keys(fields))
      const instead = hint === null ? `there are ${listNames(fields)}` : `did you mean ${hint}?`
      const message = `there is no ${path(describeValue(name))}; ${instead}`
      return { path: path(name), message, hint }
    })
  const wrong = Object.entries(fields).flatMap(([name, { rule, isValid, isOptional }]) => {
    const found = Object.hasOwn(value, name) ? value[name] : undefined
    if (found === undefined)
      return isOptional ? [] : [problem(path(name), `is missing: it must be ${rule}`)]
    return isValid(found)
      ? []
      : [problem(path(name), `must be ${rule}, not ${describeValue(found)}`)]
  })
  return [...unknown, ...wrong]
}

/** The arguments of a call by name, each with its rule. */
export type Arguments = Readonly<Record<string, readonly [value: unknown, field: Field]>>

/** Throws one `UsageError` that names all problems of the options and arguments of a call: a mistyped `dryRun` must not act. */
export function checkCall(
  call: string,
  options: unknown,
  fields: Fields,
  args: Arguments = {},
): void {
  const problems = [
    ...Object.entries(args).flatMap(([name, [value, field]]) =>
      problemsIn({ [name]: value }, { [name]: field }, name),
    ),
    ...problemsIn(options, fields, 'the options'),
  ]
  if (problems.length > 0)
    throw new UsageError(`${call} was not done: ${listProblems(problems)}`, { problems })
}

function problem(path: string, what: string): Problem {
  return { path, message: `${path} ${what}`, hint: null }
}

/** Returns the problems as the end of a sentence. */
export function listProblems(problems: readonly Problem[]): string {
  return problems
    .map(({ message }) => message)
    .join('; ')
    .replace(/[^?]$/, '$&.')
}

function listNames(fields: Fields): string {
  return Object.keys(fields).join(', ') || 'nothing in it'
}

/** Describes any value by its type, for a message. */
export function describeValue(value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object' && value !== null) return 'an object'
  if (typeof value === 'function') return 'a function'
  if (typeof value !== 'string') return `${String(value)}${typeof value === 'bigint' ? 'n' : ''}`
  const text = JSON.stringify(value.slice(0, 61))
  return value.length > 60 ? `${text.slice(0, 60)}…` : text
}
