import type { Millis } from '../../../core/model/time.ts'

/** Returns the latest of these times; null if none is known. */
export function latestOf(times: readonly (Millis | null)[]): Millis | null {
  const known = times.filter((at) => at !== null)
  return known.length > 0 ? Math.max(...known) : null
}
