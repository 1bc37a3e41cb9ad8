import type { Mapping, StatusValue } from './mapping.ts'

/** Status values as text, however their column holds them. */

export function isStatusValue(value: unknown): value is StatusValue {
  if (typeof value === 'string') return value.trim() !== ''
  return typeof value === 'boolean' || Number.isSafeInteger(value)
}

/** Changes the text of each value of a mapping. */
export function mapStatusValues(mapping: Mapping, change: (value: string) => string): Mapping {
  const entries = Object.entries(mapping.statusValues).map(([status, values]) => [
    status,
    values.map((one) => ({ ...one, value: change(one.value) })),
  ])
  return { ...mapping, statusValues: Object.fromEntries(entries) as Mapping['statusValues'] }
}
