import {
  DEFAULT_POLICY,
  optionNameOf,
  type GroupPolicy,
  type Policy,
  type PolicyOptions,
} from '../core/model/policy.ts'
import { formatDuration } from '../core/model/time.ts'

/** One setting that counts, as a person would write it, and who said so. */
export type PolicySetting = {
  /** As in the config: `maxSilence`. */
  readonly name: string
  /** The group that it counts for; null: all. */
  readonly group: string | null
  readonly value: string | number | boolean | null
  /**
   * The default, the config's preset, the crawl's own policy, what counts for the rows of an adopted table, or the
   * config's word on the source.
   */
  readonly origin: 'default' | 'preset' | 'crawl' | 'adopted' | 'config'
}

export type PolicyLayers = {
  /** The config's word on the source, as written. */
  readonly configured: PolicyOptions
  /** What the preset sets. */
  readonly preset: Partial<Policy>
  /** Who else can have said something. */
  readonly ownOrigin: 'crawl' | 'adopted'
}

/** Every setting of a policy with its origin: the config's word, the preset, the default, or else the crawl or the table. */
export function traceSettings(policy: Policy, layers: PolicyLayers): PolicySetting[] {
  const { groups, ...own } = policy
  const settings = Object.entries(own).map(([field, value]): PolicySetting => {
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
): PolicySetting['origin'] {
  if (configured[name as keyof PolicyOptions] !== undefined) return 'config'
  if (Object.hasOwn(preset, field) && preset[field as keyof Policy] === value) return 'preset'
  return DEFAULT_POLICY[field as keyof Policy] === value ? 'default' : ownOrigin
}

function groupSettings(
  group: string,
  one: GroupPolicy,
  { configured, ownOrigin }: PolicyLayers,
): PolicySetting[] {
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

/** As a person would write it: `15m`, not 900000. */
function formatValue(field: string, value: unknown): PolicySetting['value'] {
  return typeof value === 'number' && field.endsWith('Ms')
    ? formatDuration(value)
    : (value as PolicySetting['value'])
}
