/** How the runs of a source are kept alive and recovered. Durations are in milliseconds. */
export type Policy = {
  readonly heartbeatMs: number
  /** Silence after which a worker's targets are taken. At least three beats. */
  readonly leaseMs: number
  /** Beating without progress for longer is `stalled`. */
  readonly maxSilenceMs: number
  /** Null: a run may take as long as it takes. */
  readonly maxDurationMs: number | null
  /** Age at which a run with no owner, no progress and no checkpoint is dead. */
  readonly abandonAfterMs: number
  /** Age at which a run without a known owner is stale; null: never by age alone. */
  readonly staleAfterMs: number | null
  readonly onStale: 'keep' | 'fail'
  readonly onCrash: 'resume' | 'fail' | 'hold'
  readonly onStalled: 'alert' | 'resume' | 'fail'
  /** Runs with one target that died with nothing done are tried again this often. */
  readonly runRetries: number
  /** Workers a target may take down, claimed alone and without progress in between, before it is parked. */
  readonly maxCrashes: number
  /** Errors of a target's handler in a row that are tried again. */
  readonly retries: number
  readonly backoffMs: number
  readonly backoffMaxMs: number
  readonly autoClean: boolean
  /** At start-up, how long to wait for a sign of what has shown none at all. */
  readonly startupGraceMs: number
  /** A group's own limits for its targets, over those above. Null: no group has any. */
  readonly groups: Readonly<Record<string, GroupPolicy>> | null
}

/** What a group may have of its own; the rest belongs to the run or its workers as a whole. */
export type GroupPolicy = Partial<
  Pick<
    Policy,
    | 'maxSilenceMs'
    | 'onStalled'
    | 'onCrash'
    | 'maxCrashes'
    | 'retries'
    | 'backoffMs'
    | 'backoffMaxMs'
  >
>

export const DEFAULT_POLICY: Policy = {
  heartbeatMs: 1_000,
  leaseMs: 15_000,
  maxSilenceMs: 15 * 60_000,
  maxDurationMs: null,
  abandonAfterMs: 24 * 3_600_000,
  staleAfterMs: null,
  onStale: 'keep',
  onCrash: 'resume',
  onStalled: 'alert',
  runRetries: 1,
  maxCrashes: 3,
  retries: 3,
  backoffMs: 1_000,
  backoffMaxMs: 60_000,
  autoClean: false,
  startupGraceMs: 5_000,
  groups: null,
}

/** How often dead workers are looked for. */
export const SWEEP_INTERVAL_MS = 250
/** From the first SIGTERM to the end, at most: below the 30 s that supervisors usually allow. */
export const STOP_DEADLINE_MS = 25_000

/** As it counts for the targets of a group. */
export function policyForGroup(policy: Policy, group: string | null): Policy {
  const { groups } = policy
  if (group === null || groups === null || !Object.hasOwn(groups, group)) return policy
  return { ...policy, ...groups[group] }
}

/** Applies changes to a policy. The changes of a group leave its other limits as they are. */
export function changePolicy(base: Policy, changes: Partial<Policy>): Policy {
  if (!changes.groups) return { ...base, ...changes }
  const groups: Record<string, GroupPolicy> = { ...base.groups }
  for (const [group, limits] of Object.entries(changes.groups))
    groups[group] = { ...groups[group], ...limits }
  return { ...base, ...changes, groups }
}

/** A worker must be able to miss a heartbeat without losing its claims. */
export function isLeaseTooShort({ leaseMs, heartbeatMs }: Policy): boolean {
  return leaseMs < 3 * heartbeatMs
}
