import type { Table } from '../lib/text/sentence.ts'
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

/** Settings with their origin. */
export function settingsTable(settings: readonly PolicySetting[], preset: string | null): Table {
  return {
    columns: [{ header: 'SETTING' }, { header: 'VALUE' }, { header: 'FROM', flex: true }],
    rows: settings.map(({ name, group, value, origin }) => {
      const from = origin === 'preset' ? `preset ${preset}` : origin
      return [
        name,
        value === null ? 'none' : String(value),
        group === null ? from : `${from}, group ${group}`,
      ]
    }),
  }
}
