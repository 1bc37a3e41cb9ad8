import type { PolicySetting, SourcePolicies } from './policy-origin.ts'

/** The settings that apply to a source; null: to every source that the config does not mention. */
export type SourcePolicy = {
  readonly source: string | null
  readonly settings: readonly PolicySetting[]
}

/** No source has this name. */
const ANY_SOURCE = ''

/** Returns the settings of a source, or of all that the config mentions; of these only what is not at its default, unless `all`. */
export function listPolicies(
  config: SourcePolicies,
  { source: wanted, all = false }: { readonly source?: string | undefined; readonly all?: boolean },
): SourcePolicy[] {
  const sources = wanted === undefined ? [null, ...config.sources] : [wanted]
  return sources.map((source) => {
    const isKept = ({ origin }: PolicySetting): boolean =>
      all || source === null || wanted !== undefined || origin !== 'default'
    return { source, settings: config.settingsOf(source ?? ANY_SOURCE).filter(isKept) }
  })
}
