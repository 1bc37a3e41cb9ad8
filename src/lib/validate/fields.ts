import { closest } from '../../core/model/closest.ts'
import { isObject, type Field } from '../../core/model/fields.ts'
import { parseDuration } from '../../core/model/time.ts'

/** Checks that an object given by the user has only these fields. `path` locates it in the message. */
export function checkFields(
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
      `${path} has no ${name}${didYouMean(name, names) || `; there are ${names.join(', ')}`}`,
    )
  }
  return given
}

/** The end of a sentence about a name that is none of these. */
export function didYouMean(name: unknown, names: readonly string[]): string {
  const hint = typeof name === 'string' ? closest(name, names) : null
  return hint ? `; did you mean ${hint}?` : ''
}

export const NON_EMPTY_STRING: Field = {
  rule: 'text that is not empty',
  isValid: (value) => typeof value === 'string' && value !== '',
}
export const DURATION: Field = {
  rule: 'a duration like 24h',
  isValid: (value) => parseDuration(value) !== null,
}

export function arrayOf(field: Field): Field {
  return {
    rule: `a list, each of it ${field.rule}`,
    isValid: (value) => Array.isArray(value) && value.every((one) => field.isValid(one)),
  }
}
