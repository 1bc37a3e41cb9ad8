import { closest } from './closest.ts'
import { UsageError } from './errors.ts'
import { INTEGER_MAX } from './limits.ts'
import { parseDuration } from './time.ts'

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The fields of an object that a user wrote, of which only these may be there. `path` says where it stands. */
export function fields(
  path: string,
  given: unknown,
  names: readonly string[],
  mistakes: string[],
): Readonly<Record<string, unknown>> {
  if (!isObject(given)) {
    mistakes.push(`${path} must be an object`)
    return {}
  }
  for (const name of Object.keys(given).filter((name) => !names.includes(name))) {
    mistakes.push(
      `${path} has no ${name}${meant(name, names) || `; there are ${names.join(', ')}`}`,
    )
  }
  return given
}

/** The end of a sentence about a name that is none of these. */
export function meant(name: unknown, names: readonly string[]): string {
  const hint = typeof name === 'string' ? closest(name, names) : null
  return hint ? `; did you mean ${hint}?` : ''
}

/** What may stand in one field. */
export type Field = {
  /** Completes “… must be”. */
  readonly rule: string
  readonly fits: (value: unknown) => boolean
  readonly isOptional?: true
}
export type Fields = Readonly<Record<string, Field>>

export const ANYTHING: Field = { rule: 'anything', fits: () => true }
export const FLAG: Field = { rule: 'true or false', fits: (value) => typeof value === 'boolean' }
export const FUNCTION: Field = { rule: 'a function', fits: (value) => typeof value === 'function' }
export const TEXT: Field = { rule: 'text', fits: (value) => typeof value === 'string' }
export const FILLED_TEXT: Field = {
  rule: 'text that is not empty',
  fits: (value) => typeof value === 'string' && value !== '',
}
export const AMOUNT: Field = {
  rule: `a whole number from 0 to ${Number.MAX_SAFE_INTEGER}`,
  fits: (value) => Number.isSafeInteger(value) && (value as number) >= 0,
}
export const DURATION: Field = {
  rule: 'a duration like 24h',
  fits: (value) =>
    (typeof value === 'string' || typeof value === 'number') && parseDuration(value) !== null,
}

export function count(from: number, max = INTEGER_MAX): Field {
  return {
    rule: `a whole number from ${from} to ${max}`,
    fits: (value) =>
      Number.isInteger(value) && (value as number) >= from && (value as number) <= max,
  }
}

export function listOf(field: Field): Field {
  return {
    rule: `a list, each of it ${field.rule}`,
    fits: (value) => Array.isArray(value) && value.every((one) => field.fits(one)),
  }
}

export function orNull({ rule, fits }: Field): Field {
  return { rule: `${rule}, or null`, fits: (value) => value === null || fits(value) }
}

export function optional(field: Field): Field {
  return { ...field, isOptional: true }
}

/** Every mistake, not only the first. `whole`: what it is; `at`: where it stands, for a part of something. */
export function mistakesIn(value: unknown, fields: Fields, whole: string, at?: string): string[] {
  if (!isObject(value)) {
    const found = value === undefined ? 'is missing' : `is ${showValue(value)}`
    return [`${at ?? whole} must be an object with ${list(fields)}, but ${found}`]
  }
  const path = (name: string): string => (at === undefined ? name : `${at}.${name}`)
  const unknown = Object.keys(value)
    .filter((name) => !Object.hasOwn(fields, name))
    .map((name) => {
      const hint = closest(name, Object.keys(fields))
      const instead = hint === null ? `there are ${list(fields)}` : `did you mean ${hint}?`
      return `there is no ${path(showValue(name))}; ${instead}`
    })
  const wrong = Object.entries(fields).flatMap(([name, { rule, fits, isOptional }]) => {
    const found = Object.hasOwn(value, name) ? value[name] : undefined
    if (found === undefined)
      return isOptional ? [] : [`${path(name)} is missing: it must be ${rule}`]
    return fits(found) ? [] : [`${path(name)} must be ${rule}, not ${showValue(found)}`]
  })
  return [...unknown, ...wrong]
}

/** Refuses options of a call of the library: a mistyped `dryRun` must not act. */
export function checkOptions(call: string, given: unknown, fields: Fields): void {
  const mistakes = mistakesIn(given, fields, 'the options')
  if (mistakes.length > 0) throw new UsageError(`${call} was not done: ${mistakes.join('; ')}.`)
}

/** Refuses one argument of a call of the library. */
export function checkArgument(call: string, name: string, given: unknown, field: Field): void {
  if (given === undefined && field.isOptional) return
  if (!field.fits(given))
    throw new UsageError(
      `${call} was not done: ${name} must be ${field.rule}, not ${showValue(given)}.`,
    )
}

function list(fields: Fields): string {
  return Object.keys(fields).join(', ') || 'nothing in it'
}

/** A short look at what may be anything, without asking it for more than its type. */
export function showValue(value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object' && value !== null) return 'an object'
  if (typeof value === 'function') return 'a function'
  if (typeof value !== 'string') return `${String(value)}${typeof value === 'bigint' ? 'n' : ''}`
  const text = JSON.stringify(value.slice(0, 61))
  return value.length > 60 ? `${text.slice(0, 60)}…` : text
}
