import { closest } from './closest.ts'

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
