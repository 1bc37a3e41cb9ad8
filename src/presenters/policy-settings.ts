import { DEFAULT_POLICY, type GroupPolicy, type Policy } from '../core/model/policy.ts'
import { optionNameOf, type PolicyOptions } from '../lib/validate/policy-options.ts'
import type { PolicySubject } from '../core/model/policy-of.ts'
import { formatDuration } from '../core/model/time.ts'
import { left, flex, type Table, makeTable } from '../lib/text/sentence.ts'

import type { Setting } from './results.ts'

/** The policies of the config, by source. */
export type SourcePolicies = {
  /** Sources that the config mentions. */
  readonly sources: readonly string[]
  /** Returns the policy of a new run: defaults, preset, the crawl's own options, then the config's for this source. */
  policyFor(source: string, crawlOptions?: PolicyOptions): Policy
  /** Returns each setting with its origin. Without a run: for one that starts now. */
  settingsOf(source: string, run?: Omit<PolicySubject, 'source'>): Setting[]
}

export type PolicyLayers = {
  /** The config's options for the source, as written. */
  readonly configured: PolicyOptions
  /** What the preset sets. */
  readonly preset: Partial<Policy>
  /** Where any other value was set. */
  readonly ownOrigin: 'crawl' | 'table'
}

/** Returns every setting of a policy with its origin. */
export function traceSettings(policy: Policy, layers: PolicyLayers): Setting[] {
  const { groups, ...own } = policy
  const settings = Object.entries(own).map(([field, value]): Setting => {
    const name = optionNameOf(field)
    return {
      name,
      group: null,
      value: formatValue(field, value),
      origin: originOf(field, name, value, layers),
    }
  })
  return [
    ...settings,
    ...Object.entries(groups ?? {}).flatMap(([group, one]) => groupSettings(group, one, layers)),
  ]
}

function originOf(
  field: string,
  name: string,
  value: unknown,
  { configured, preset, ownOrigin }: PolicyLayers,
): Setting['origin'] {
  if (configured[name as keyof PolicyOptions] !== undefined) return 'config'
  if (Object.hasOwn(preset, field) && preset[field as keyof Policy] === value) return 'preset'
  return DEFAULT_POLICY[field as keyof Policy] === value ? 'default' : ownOrigin
}

function groupSettings(
  group: string,
  one: GroupPolicy,
  { configured, ownOrigin }: PolicyLayers,
): Setting[] {
  return Object.entries(one).map(([field, value]) => {
    const name = optionNameOf(field)
    const isConfigured = Object.hasOwn(configured.groups?.[group] ?? {}, name)
    return {
      name,
      group,
      value: formatValue(field, value),
      origin: isConfigured ? 'config' : ownOrigin,
    }
  })
}

/** `15m`, not 900000. */
function formatValue(field: string, value: unknown): Setting['value'] {
  return typeof value === 'number' && field.endsWith('Ms')
    ? formatDuration(value)
    : (value as Setting['value'])
}

/** The settings that apply to a source; null: to every source that the config does not mention. */
export type SourcePolicy = {
  readonly source: string | null
  readonly settings: readonly Setting[]
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
    const isKept = ({ origin }: Setting): boolean =>
      all || source === null || wanted !== undefined || origin !== 'default'
    return { source, settings: config.settingsOf(source ?? ANY_SOURCE).filter(isKept) }
  })
}

/** Settings with their origin. */
export function settingsTable(settings: readonly Setting[], preset: string | null): Table {
  return makeTable(settings, [
    left('SETTING', ({ name }) => name),
    left('VALUE', ({ value }) => (value === null ? 'none' : String(value))),
    flex('FROM', ({ group, origin }) => {
      const from = origin === 'preset' ? `preset ${preset}` : origin
      return group === null ? from : `${from}, group ${group}`
    }),
  ])
}
