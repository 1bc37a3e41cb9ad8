import type { Alert } from './store/store.ts'
import { DEFAULT_REPEAT_MS, type AlertRule, type ChannelName } from './rule.ts'
import type { Millis } from '../../core/model/time.ts'
import { ruleMatches, type MatchedAlert } from './decide.ts'

/** A message that is due at one destination. */
export type Notification = {
  readonly event: 'raised' | 'repeated' | 'resolved'
  /** The stored alert, with its current reason and command. */
  readonly alert: Alert
  readonly to: ChannelName
  /** When it was last reported there; null: never. */
  readonly notifiedAt: Millis | null
}

/** The process that checks, and where it can send. */
export type NotifierContext = {
  readonly owner: string
  readonly rules: readonly AlertRule[]
  /** The destination of each channel. */
  readonly destinations: ReadonlyMap<ChannelName, string>
  /** Causes that this process raised or resolved: no other process is about to report them. */
  readonly ownCauses: ReadonlySet<string>
  /** No check follows. */
  readonly isLastCheck: boolean
}

/** Time for another process with the same rules to report a cause that it raised. */
const SAME_RULES_DELAY_MS = 60_000
/** The same for processes with other rules, which may have the same destination. */
const OTHER_RULES_DELAY_MS = 10_000
/** After this time the end of an alert is no longer reported. */
const RESOLVED_NOTIFY_MAX_MS = 86_400_000

/**
 * Decides what is due at which destination. A cause is reported there at most once per repeat interval, even if it comes
 * and goes, and its end only if the cause was reported. `resolved`: the latest resolved alerts. Reads only its arguments.
 */
export function decideNotifications(
  matched: readonly MatchedAlert[],
  open: readonly Alert[],
  resolved: readonly Alert[],
  context: NotifierContext,
  now: Millis,
): Notification[] {
  const byCause = new Map(open.map((alert) => [alert.cause, alert]))
  const notifications = matched.flatMap((one): Notification[] => {
    const alert = byCause.get(one.cause)
    if (!alert) return []
    const { because, command } = one
    return one.to
      .filter((to) => isDue(one, alert, to, context, now))
      .map((to) => {
        const notifiedAt = notifiedAtOf(alert, context.destinations.get(to)!)
        const event = notifiedAt === null ? 'raised' : 'repeated'
        return { event, alert: { ...alert, because, command }, to, notifiedAt }
      })
  })
  return [...notifications, ...resolvedNotifications(open, resolved, context, now)]
}

function isDue(
  { repeatMs }: MatchedAlert,
  alert: Alert,
  to: ChannelName,
  context: NotifierContext,
  now: Millis,
): boolean {
  const destination = context.destinations.get(to)
  if (destination === undefined) return false
  const notifiedAt = notifiedAtOf(alert, destination)
  if (notifiedAt !== null) return repeatMs !== null && now - notifiedAt >= repeatMs
  const before = alert.deliveries[destination]?.sentAt ?? -Infinity
  return (
    now - before >= (repeatMs ?? DEFAULT_REPEAT_MS) && mayNotify(alert, alert.since, context, now)
  )
}

/** When this occurrence of the cause was reported there; null: not yet. */
function notifiedAtOf({ deliveries, since }: Alert, destination: string): Millis | null {
  const at = deliveries[destination]?.sentAt ?? null
  return at !== null && at >= since ? at : null
}

function mayNotify(
  alert: Alert,
  happenedAt: Millis,
  context: NotifierContext,
  now: Millis,
): boolean {
  if (context.ownCauses.has(alert.cause)) return true
  if (alert.owner === context.owner) return now - happenedAt >= SAME_RULES_DELAY_MS
  return context.isLastCheck || now - happenedAt >= OTHER_RULES_DELAY_MS
}

function resolvedNotifications(
  open: readonly Alert[],
  resolved: readonly Alert[],
  context: NotifierContext,
  now: Millis,
): Notification[] {
  const ofRun = Map.groupBy([...open, ...resolved], ({ run }) => run)
  return resolved.flatMap((alert): Notification[] => {
    const resolvedAt = alert.resolvedAt!
    if (now - resolvedAt > RESOLVED_NOTIFY_MAX_MS || !mayNotify(alert, resolvedAt, context, now))
      return []
    const newer =
      alert.run === null ? [] : ofRun.get(alert.run)!.filter((other) => isNewer(other, alert))
    // A silent run that is dead now has not recovered.
    if (newer.some((other) => other.resolvedAt === null)) return []
    const asking = context.rules.filter((rule) => rule.notifyResolved && ruleMatches(rule, alert))
    return [...new Set(asking.flatMap(({ to }) => to))]
      .filter((to) => {
        const destination = context.destinations.get(to)
        if (destination === undefined || notifiedAtOf(alert, destination) === null) return false
        if ((alert.deliveries[destination]?.endedAt ?? -Infinity) >= resolvedAt) return false
        // The end of the newer alert is reported there instead.
        return newer.every((other) => notifiedAtOf(other, destination) === null)
      })
      .map((to) => ({ event: 'resolved', alert, to, notifiedAt: null }))
  })
}

/** Whether the other alert of the run began later and lasted longer. */
function isNewer(other: Alert, alert: Alert): boolean {
  if (other.cause === alert.cause || other.since < alert.since) return false
  return other.resolvedAt === null || other.resolvedAt > alert.resolvedAt!
}
