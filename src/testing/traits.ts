import { PROFILE_TRAITS, type RunTraits } from '../core/model/traits.ts'

export const STANDARD_TRAITS = PROFILE_TRAITS.standard

/** Traits of row 7 of the table `jobs`, for tests of code that does not know where rows come from. */
export function makeRowTraits(traits: Partial<RunTraits> = {}): RunTraits {
  return {
    ...STANDARD_TRAITS,
    origin: { table: 'jobs', key: '7' },
    actions: ['revert'],
    ownerIsKnown: false,
    isUndated: false,
    continuedBy: 'own-program',
    recoveredBy: 'server',
    alertAfterMs: 2 * 60_000,
    hasTargets: false,
    isOnlyLive: false,
    ...traits,
  }
}
