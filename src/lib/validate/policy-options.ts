import { closest } from '../../core/model/closest.ts'
import { isObject } from '../../core/model/fields.ts'
import {
  changePolicy,
  DEFAULT_POLICY,
  isLeaseTooShort,
  type GroupPolicy,
  type Policy,
} from '../../core/model/policy.ts'
import { parseDuration, type Duration } from '../../core/model/time.ts'

/** How the runs of a source are kept alive, judged and recovered. Every option accepts `undefined`. */
export type PolicyOptions = {
  /** Time between two heartbeats of a worker, at least 50ms. @default '1s' */
  heartbeat?: Duration | undefined
  /**
   * A worker without a heartbeat for this long loses its claims, and its late writes are refused. Heartbeats come from a
   * thread of their own: a long page does not delay them. A worker whose death is proven does not get this long. At least
   * three times `heartbeat`. @default '15s' (tables of your own: '5m')
   */
  lease?: Duration | undefined
  /** A live worker that saves no page of a target for this long is `stalled`. At least 1s. @default '15m' */
  maxSilence?: Duration | undefined
  /** Longest time since a run began or was last resumed; `null`: no limit. @default null */
  maxDuration?: Duration | null | undefined
  /** Age at which a run without worker, progress and checkpoint is dead. @default '24h' */
  abandonAfter?: Duration | undefined
  /** Idle time after which a `running` run without a known owner is stale; `null`: never. @default null */
  staleAfter?: Duration | null | undefined
  /** For a stale run. @default 'keep' */
  onStale?: 'keep' | 'fail' | undefined
  /** For a target with saved pages whose worker died; `hold` makes it `stuck`. @default 'resume' */
  onCrash?: 'resume' | 'fail' | 'hold' | undefined
  /** For a stalled target and for a run beyond `maxDuration`; `resume` takes it from its worker. @default 'alert' */
  onStalled?: 'alert' | 'resume' | 'fail' | undefined
  /** How often a run from `begin` that died with nothing saved is followed by a new run. @default 1 */
  runRetries?: number | undefined
  /** Workers that may die with this target as their only one, without a page in between, before it is parked. @default 3 */
  maxCrashes?: number | undefined
  /** Retries in a row of a page that throws, before its target is `failed`. @default 3 */
  retries?: number | undefined
  /** Wait before the first retry; it doubles each time, and half of it is random. @default '1s' */
  backoff?: Duration | undefined
  /** Longest wait between two retries. @default '1m' */
  backoffMax?: Duration | undefined
  /** Whether workers mark dead runs `abandoned` by themselves. @default false */
  autoClean?: boolean | undefined
  /** Wait at process start before runs without any sign of life are judged. @default '5s' */
  startupGrace?: Duration | undefined
  /** Limits of their own for the targets of a group, by its name. @default {} */
  groups?: Readonly<Record<string, GroupPolicyOptions>> | undefined
}

/** What a group may have of its own: see the same names of `PolicyOptions`. */
export type GroupPolicyOptions = Pick<
  PolicyOptions,
  'maxSilence' | 'onStalled' | 'onCrash' | 'maxCrashes' | 'retries' | 'backoff' | 'backoffMax'
>

type Field = { to: keyof Policy } & (
  | { kind: 'duration'; min: number; orNull?: true }
  | { kind: 'count'; min: number }
  | { kind: 'choice'; of: readonly string[] }
  | { kind: 'flag' }
)

const FIELDS: Record<Exclude<keyof PolicyOptions, 'groups'>, Field> = {
  heartbeat: { to: 'heartbeatMs', kind: 'duration', min: 50 },
  lease: { to: 'leaseMs', kind: 'duration', min: 150 },
  maxSilence: { to: 'maxSilenceMs', kind: 'duration', min: 1_000 },
  maxDuration: { to: 'maxDurationMs', kind: 'duration', min: 1_000, orNull: true },
  abandonAfter: { to: 'abandonAfterMs', kind: 'duration', min: 1_000 },
  staleAfter: { to: 'staleAfterMs', kind: 'duration', min: 1_000, orNull: true },
  onStale: { to: 'onStale', kind: 'choice', of: ['keep', 'fail'] },
  onCrash: { to: 'onCrash', kind: 'choice', of: ['resume', 'fail', 'hold'] },
  onStalled: { to: 'onStalled', kind: 'choice', of: ['alert', 'resume', 'fail'] },
  runRetries: { to: 'runRetries', kind: 'count', min: 0 },
  maxCrashes: { to: 'maxCrashes', kind: 'count', min: 1 },
  retries: { to: 'retries', kind: 'count', min: 0 },
  backoff: { to: 'backoffMs', kind: 'duration', min: 0 },
  backoffMax: { to: 'backoffMaxMs', kind: 'duration', min: 0 },
  autoClean: { to: 'autoClean', kind: 'flag' },
  startupGrace: { to: 'startupGraceMs', kind: 'duration', min: 0 },
}

const GROUP_FIELDS: readonly string[] = [
  'maxSilence',
  'onStalled',
  'onCrash',
  'maxCrashes',
  'retries',
  'backoff',
  'backoffMax',
] satisfies (keyof GroupPolicyOptions)[]

/** The name of a policy field in the config: `maxSilence` for `maxSilenceMs`. */
export function optionNameOf(field: string): string {
  return Object.entries(FIELDS).find(([, { to }]) => to === field)?.[0] ?? field
}

/** The policy that options make of a base, and every mistake in them at once. */
export function makePolicy(
  options: unknown,
  base: Policy = DEFAULT_POLICY,
): { policy: Policy; mistakes: string[] } {
  const { changes, mistakes } = readPolicyOptions(options)
  const policy = changePolicy(base, changes)
  if (mistakes.length === 0 && isLeaseTooShort(policy)) {
    mistakes.push(
      `policy.lease (${policy.leaseMs} ms) must hold at least three beats of policy.heartbeat (${policy.heartbeatMs} ms)`,
    )
  }
  return { policy: mistakes.length === 0 ? policy : base, mistakes }
}

/** Returns what options change in a policy, and every mistake in them. */
export function readPolicyOptions(options: unknown): {
  changes: Partial<Policy>
  mistakes: string[]
} {
  if (options === undefined) return { changes: {}, mistakes: [] }
  if (!isObject(options)) return { changes: {}, mistakes: ['policy must be an object'] }
  const { groups, ...own } = options
  const mistakes: string[] = []
  const changes = {
    ...readFields(own, [...Object.keys(FIELDS), 'groups'], 'policy', mistakes),
    ...(groups !== undefined && { groups: readGroups(groups, mistakes) }),
  }
  return { changes, mistakes }
}

/** The given fields under the names of `Policy`. */
function readFields(
  options: Record<string, unknown>,
  known: readonly string[],
  where: string,
  mistakes: string[],
): Partial<Policy> {
  const read: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(options)) {
    if (!known.includes(name)) {
      mistakes.push(`${where} has no ${name}${hintFor(name, known)}`)
    } else if (value !== undefined) {
      const field = FIELDS[name as keyof typeof FIELDS]
      const made = readField(field, value)
      if ('mistake' in made) mistakes.push(`${where}.${name} ${made.mistake}`)
      else read[field.to] = made.value
    }
  }
  return read
}

function readGroups(groups: unknown, mistakes: string[]): Record<string, GroupPolicy> {
  if (!isObject(groups)) {
    mistakes.push('policy.groups must be an object, by group')
    return {}
  }
  const read: Record<string, GroupPolicy> = {}
  for (const [group, options] of Object.entries(groups)) {
    const where = `policy.groups[${JSON.stringify(group)}]`
    if (isObject(options)) read[group] = readFields(options, GROUP_FIELDS, where, mistakes)
    else mistakes.push(`${where} must be an object`)
  }
  return read
}

function hintFor(name: string, known: readonly string[]): string {
  const hint = closest(name, known)
  if (hint) return `; did you mean ${hint}?`
  if (known === GROUP_FIELDS && Object.hasOwn(FIELDS, name)) {
    return ` of its own: that belongs to the whole source; a group has ${known.join(', ')}`
  }
  return ''
}

function readField(field: Field, value: unknown): { value: unknown } | { mistake: string } {
  switch (field.kind) {
    case 'duration': {
      if (value === null && field.orNull) return { value }
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
