import { parseDuration, type Duration } from './time.ts'
import { closest } from './closest.ts'

/** How a source's runs are kept alive and judged. Lengths of time are in milliseconds. */
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
  readonly maxRetries: number
  /** Workers a target may take down, claimed alone and without progress in between, before it is parked. */
  readonly maxCrashes: number
  /** Errors of a target's handler in a row that are tried again. */
  readonly retries: number
  readonly backoffMs: number
  readonly backoffMaxMs: number
  readonly autoClean: boolean
  /** At start-up, how long to wait for a sign of what has shown none at all. */
  readonly graceMs: number
}

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
  maxRetries: 1,
  maxCrashes: 3,
  retries: 3,
  backoffMs: 1_000,
  backoffMaxMs: 60_000,
  autoClean: false,
  graceMs: 5_000,
}

/** How often dead workers are looked for. */
export const SWEEP_MS = 250
/** From the first SIGTERM to the end, at most: below the 30 s that supervisors usually allow. */
export const STOP_DEADLINE_MS = 25_000

/** As users write it: durations in words, every field optional. */
export type PolicyOptions = {
  heartbeat?: Duration
  lease?: Duration
  maxSilence?: Duration
  maxDuration?: Duration
  abandonAfter?: Duration
  staleAfter?: Duration
  onStale?: Policy['onStale']
  onCrash?: Policy['onCrash']
  onStalled?: Policy['onStalled']
  maxRetries?: number
  maxCrashes?: number
  retries?: number
  backoff?: Duration
  backoffMax?: Duration
  autoClean?: boolean
  grace?: Duration
}

type Field = { to: keyof Policy } & (
  | { kind: 'duration'; min: number }
  | { kind: 'count'; min: number }
  | { kind: 'choice'; of: readonly string[] }
  | { kind: 'flag' }
)

const FIELDS: Record<keyof PolicyOptions, Field> = {
  heartbeat: { to: 'heartbeatMs', kind: 'duration', min: 50 },
  lease: { to: 'leaseMs', kind: 'duration', min: 150 },
  maxSilence: { to: 'maxSilenceMs', kind: 'duration', min: 1_000 },
  maxDuration: { to: 'maxDurationMs', kind: 'duration', min: 1_000 },
  abandonAfter: { to: 'abandonAfterMs', kind: 'duration', min: 1_000 },
  staleAfter: { to: 'staleAfterMs', kind: 'duration', min: 1_000 },
  onStale: { to: 'onStale', kind: 'choice', of: ['keep', 'fail'] },
  onCrash: { to: 'onCrash', kind: 'choice', of: ['resume', 'fail', 'hold'] },
  onStalled: { to: 'onStalled', kind: 'choice', of: ['alert', 'resume', 'fail'] },
  maxRetries: { to: 'maxRetries', kind: 'count', min: 0 },
  maxCrashes: { to: 'maxCrashes', kind: 'count', min: 1 },
  retries: { to: 'retries', kind: 'count', min: 0 },
  backoff: { to: 'backoffMs', kind: 'duration', min: 0 },
  backoffMax: { to: 'backoffMaxMs', kind: 'duration', min: 0 },
  autoClean: { to: 'autoClean', kind: 'flag' },
  grace: { to: 'graceMs', kind: 'duration', min: 0 },
}

/** The policy that options make of a base, and every mistake in them at once. */
export function makePolicy(
  options: unknown,
  base: Policy = DEFAULT_POLICY,
): { policy: Policy; mistakes: string[] } {
  if (options === undefined) return { policy: base, mistakes: [] }
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    return { policy: base, mistakes: ['policy must be an object'] }
  }
  const mistakes: string[] = []
  const policy: Record<string, unknown> = { ...base }
  for (const [name, value] of Object.entries(options)) {
    const field = Object.hasOwn(FIELDS, name) ? FIELDS[name as keyof PolicyOptions] : undefined
    if (!field) {
      const hint = closest(name, Object.keys(FIELDS))
      mistakes.push(`policy has no ${name}${hint ? `; did you mean ${hint}?` : ''}`)
    } else if (value !== undefined) {
      const read = readField(field, value)
      if ('mistake' in read) mistakes.push(`policy.${name} ${read.mistake}`)
      else policy[field.to] = read.value
    }
  }
  const made = policy as Policy
  if (mistakes.length === 0 && made.leaseMs < 3 * made.heartbeatMs) {
    mistakes.push(
      `policy.lease (${made.leaseMs} ms) must hold at least three beats of policy.heartbeat (${made.heartbeatMs} ms)`,
    )
  }
  return { policy: mistakes.length === 0 ? made : base, mistakes }
}

function readField(field: Field, value: unknown): { value: unknown } | { mistake: string } {
  switch (field.kind) {
    case 'duration': {
      const ms = parseDuration(value)
      if (ms === null)
        return { mistake: `must be a duration like 30s, 15m or 24h, not ${show(value)}` }
      return ms >= field.min ? { value: ms } : { mistake: `must be at least ${field.min} ms` }
    }
    case 'count':
      return Number.isInteger(value) && (value as number) >= field.min
        ? { value }
        : { mistake: `must be a whole number from ${field.min}, not ${show(value)}` }
    case 'choice':
      return field.of.includes(value as string)
        ? { value }
        : { mistake: `must be one of ${field.of.join(', ')}, not ${show(value)}` }
    case 'flag':
      return typeof value === 'boolean' ? { value } : { mistake: 'must be true or false' }
  }
}

function show(value: unknown): string {
  return JSON.stringify(value) ?? String(value)
}
