import type { Settings } from '../app/config.ts'
import type { PolicySetting } from '../app/policy-origin.ts'

/** The settings that count for one source; null: for each that the config has no word on. */
export type SourcePolicy = {
  readonly source: string | null
  readonly settings: readonly PolicySetting[]
}

/** No source is called like this: what counts for all that the config has no word on. */
const ANY_SOURCE = ''

/** Of this source, or of all that the config has a word on; there only what is not at its default, unless `all`. */
export function listPolicies(
  config: Settings,
  { source: wanted, all = false }: { readonly source?: string | undefined; readonly all?: boolean },
): SourcePolicy[] {
  const sources = wanted === undefined ? [null, ...config.sources] : [wanted]
  return sources.map((source) => {
    const isKept = ({ origin }: PolicySetting): boolean =>
      all || source === null || wanted !== undefined || origin !== 'default'
    return { source, settings: config.settingsOf(source ?? ANY_SOURCE).filter(isKept) }
  })
}
