import {
  DEFAULT_POLICY,
  optionOf,
  type GroupPolicy,
  type Policy,
  type PolicyOptions,
} from '../model/policy.ts'
import { inShort } from '../model/time.ts'

/** One setting that counts, as a person would write it, and who said so. */
export type PolicySetting = {
  /** As in the config: `maxSilence`. */
  readonly name: string
  /** The group that it counts for; null: all. */
  readonly group: string | null
  readonly value: string | number | boolean | null
  readonly origin: string
}

export type Words = {
  readonly source: string
  /** The config's word on the source, as written. */
  readonly said: PolicyOptions
  readonly preset: string | null
  readonly presets: Partial<Policy>
}

/** Every setting of a policy with its origin: the config's word, the preset, the default, or else the crawl itself. */
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

function originOf(field: string, name: string, value: unknown, words: Words): string {
  if (Object.hasOwn(words.said, name)) return configsWord(words.source)
  if (Object.hasOwn(words.presets, field) && words.presets[field as keyof Policy] === value)
    return `preset ${words.preset}`
  return DEFAULT_POLICY[field as keyof Policy] === value ? 'default' : "the crawl's own policy"
}

function ofGroup(group: string, one: GroupPolicy, { source, said }: Words): PolicySetting[] {
  return Object.entries(one).map(([field, value]) => {
    const name = optionOf(field)
    const isSaid = Object.hasOwn(said.groups?.[group] ?? {}, name)
    const origin = isSaid ? configsWord(source) : "the crawl's own policy"
    return { name, group, value: written(field, value), origin }
  })
}

function configsWord(source: string): string {
  return `unstuck.config, policies[${JSON.stringify(source)}]`
}

/** As a person would write it: `15m`, not 900000. */
function written(field: string, value: unknown): PolicySetting['value'] {
  return typeof value === 'number' && field.endsWith('Ms')
    ? inShort(value)
    : (value as PolicySetting['value'])
}
