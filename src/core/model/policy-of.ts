import { changePolicy, DEFAULT_POLICY, isLeaseTooShort, type Policy } from './policy.ts'
import type { Run } from './run.ts'
import type { RunTraits } from './traits.ts'
import type { Action } from './verdict.ts'

/** How old a run without a known owner may get before it is failed. */
export const PRESETS = {
  development: { staleAfterMs: 5 * 60_000, onStale: 'fail' },
  staging: { staleAfterMs: 15 * 60_000, onStale: 'fail' },
  production: { staleAfterMs: 30 * 60_000, onStale: 'fail' },
} as const satisfies Record<string, Partial<Policy>>
/** Sets `onStale: 'fail'` and `staleAfter`: 5, 15 or 30 minutes. */
export type Preset = keyof typeof PRESETS

/** The policies of a config. Plain JSON: it is also sent to the heartbeat thread. */
export type PolicyOverrides = {
  readonly preset: Preset | null
  /** What they change, by source. */
  readonly policies: Readonly<Record<string, Partial<Policy>>>
}

/** For code that runs without a config. */
export const NO_OVERRIDES: PolicyOverrides = { preset: null, policies: {} }

declare const made: unique symbol
/** Returns the policy that applies to a run now. Only `makePolicyOf` makes one. */
export type PolicyOf = ((run: PolicySubject) => Policy) & { readonly [made]: true }
export type PolicySubject = Pick<Run, 'source' | 'policy' | 'traits'>

/** Applies the config's overrides, which may be newer than the run, to the policy stored with the run. */
export function makePolicyOf(overrides: PolicyOverrides): PolicyOf {
  const policyOf = ({ source, policy: stored, traits }: PolicySubject): Policy => {
    // The policy of a table of your own was made just now and includes the preset.
    const isRow = traits.origin !== null
    const base = isRow ? stored : withPreset(stored, overrides.preset)
    const policy = changePolicy(base, policyOverride(overrides, source))
    // An override that does not fit the stored policy must not keep the run from being assessed.
    if (isLeaseTooShort(policy)) return base
    return isRow ? limitToTableActions(policy, stored, traits) : policy
  }
  return policyOf as PolicyOf
}

/** What the config changes for a source. */
function policyOverride({ policies }: PolicyOverrides, source: string): Partial<Policy> {
  return Object.hasOwn(policies, source) ? policies[source]! : {}
}

/** The same policies with another age at which a run is dead; `undefined` changes nothing. */
export function withAbandonAfter(policyOf: PolicyOf, ageMs: number | undefined): PolicyOf {
  if (ageMs === undefined) return policyOf
  return ((run) => ({ ...policyOf(run), abandonAfterMs: ageMs })) as PolicyOf
}

/** Uses the current preset where the defaults or another preset applied; what the crawl set itself stays. */
function withPreset(stored: Policy, preset: Preset | null): Policy {
  if (!preset) return stored
  const isUnchanged = ([field, value]: [string, unknown]): boolean =>
    stored[field as keyof Policy] === value
  const { staleAfterMs, onStale } = DEFAULT_POLICY
  const isPresetValue = [{ staleAfterMs, onStale }, ...Object.values(PRESETS)].some((one) =>
    Object.entries(one).every(isUnchanged),
  )
  return isPresetValue ? { ...stored, ...PRESETS[preset] } : stored
}

/** Ignores settings that the table has no status for, and retries, because no row is ever added there. */
function limitToTableActions(policy: Policy, stored: Policy, { blocked }: RunTraits): Policy {
  const isPossible = (action: Action): boolean => blocked[action] === undefined
  const { onCrash, onStalled } = policy
  return {
    ...policy,
    runRetries: 0,
    onCrash: isPossible(onCrash) ? onCrash : stored.onCrash,
    onStalled: isPossible(onStalled) ? onStalled : stored.onStalled,
  }
}
