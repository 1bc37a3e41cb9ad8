import type { Mapping, StatusValue } from './mapping.ts'

/** Status values as text, however their column holds them. */

export function isStatusValue(value: unknown): value is StatusValue {
  if (typeof value === 'string') return value.trim() !== ''
  return typeof value === 'boolean' || Number.isSafeInteger(value)
}

/** Follows a value that means both `succeeded` and `failed`, in a row with an error. */
const WITH_ERROR = ' with an error'

export function withError(value: string): string {
  return value + WITH_ERROR
}

/** The value as it is in the table. */
export function plainValue(value: string): string {
  return hasError(value) ? value.slice(0, -WITH_ERROR.length) : value
}

export function hasError(value: string): boolean {
  return value.endsWith(WITH_ERROR)
}

/** Whether a row with this value is failed only if it has an error. */
export function isShared({ statusValues }: Pick<Mapping, 'statusValues'>, value: string): boolean {
  return statusValues.failed.some(
    (one) => hasError(one) && plainValue(one).toLowerCase() === value.toLowerCase(),
  )
}

/** Changes each value of a mapping. */
export function mapStatusValues(mapping: Mapping, change: (value: string) => string): Mapping {
  const entries = Object.entries(mapping.statusValues).map(
    ([status, values]): [string, readonly string[]] => [status, values.map(change)],
  )
  return { ...mapping, statusValues: Object.fromEntries(entries) as Mapping['statusValues'] }
}
