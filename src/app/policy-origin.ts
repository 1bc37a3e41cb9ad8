import {
  DEFAULT_POLICY,
  optionOf,
  type GroupPolicy,
  type Policy,
  type PolicyOptions,
} from '../core/model/policy.ts'
import { inShort } from '../core/model/time.ts'

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

export type Words = {
  /** The config's word on the source, as written. */
  readonly said: PolicyOptions
  /** What the preset sets. */
  readonly presets: Partial<Policy>
  /** Who else can have said something. */
  readonly own: 'crawl' | 'adopted'
}

/** Every setting of a policy with its origin: the config's word, the preset, the default, or else the crawl or the table. */
export function traceSettings(policy: Policy, words: Words): PolicySetting[] {
  const { groups, ...own } = policy
  const settings = Object.entries(own).map(([field, value]): PolicySetting => {
    const name = optionOf(field)
    return {
      name,
      group: null,
      value: written(field, value),
      origin: originOf(field, name, value, words),
    }
  })
  return [
    ...settings,
    ...Object.entries(groups ?? {}).flatMap(([group, one]) => ofGroup(group, one, words)),
  ]
}

function originOf(
  field: string,
  name: string,
  value: unknown,
  { said, presets, own }: Words,
): PolicySetting['origin'] {
  if (said[name as keyof PolicyOptions] !== undefined) return 'config'
  if (Object.hasOwn(presets, field) && presets[field as keyof Policy] === value) return 'preset'
  return DEFAULT_POLICY[field as keyof Policy] === value ? 'default' : own
}

function ofGroup(group: string, one: GroupPolicy, { said, own }: Words): PolicySetting[] {
  return Object.entries(one).map(([field, value]) => {
    const name = optionOf(field)
    const isSaid = Object.hasOwn(said.groups?.[group] ?? {}, name)
    return { name, group, value: written(field, value), origin: isSaid ? 'config' : own }
  })
}

/** As a person would write it: `15m`, not 900000. */
function written(field: string, value: unknown): PolicySetting['value'] {
  return typeof value === 'number' && field.endsWith('Ms')
    ? inShort(value)
    : (value as PolicySetting['value'])
}
