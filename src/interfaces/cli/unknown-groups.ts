import { closest } from '../../core/model/closest.ts'
import type { Run } from '../../core/model/run.ts'
import type { Store } from '../../core/store/store.ts'

/** Returns a warning about groups that none of these runs has, which are probably mistyped; or null. */
export async function describeUnknownGroups(
  store: Store,
  runs: readonly Run[],
  wanted: readonly string[],
): Promise<string | null> {
  if (wanted.length === 0) return null
  const names = new Set<string>()
  for (const { id } of runs) {
    for (const { group } of await store.countsByGroup(id)) if (group !== null) names.add(group)
  }
  const warnings = wanted
    .filter((name) => !names.has(name))
    .map((name) => {
      const hint = closest(name, [...names])
      return `there is no group ${name}${hint ? `; did you mean ${hint}?` : ''}`
    })
  return warnings.length > 0 ? `Note: ${warnings.join('; ')}` : null
}
