import type { Alert } from '../../core/model/alert.ts'
import { DEFAULT_REPEAT_MS, type AlertRule, type ChannelName } from '../../core/model/alert-rule.ts'
import type { Millis } from '../../core/model/time.ts'
import { ruleMatches, type MatchedAlert } from './decide.ts'

/** What those at one destination are to be told. */
export type Notification = {
  readonly event: 'raised' | 'repeated' | 'resolved'
  /** As it is kept, with what is known of it now. */
  readonly alert: Alert
  readonly to: ChannelName
  /** When they last heard that it is so; null: not yet. */
  readonly notifiedAt: Millis | null
}

/** Whoever looks, and whom they can tell. */
export type NotifierContext = {
  readonly owner: string
  readonly rules: readonly AlertRule[]
  /** Channels that something can be sent through, and where each leads. */
  readonly destinations: ReadonlyMap<ChannelName, string>
  /** Causes that this process raised or resolved: nobody else is about to tell them. */
  readonly ownCauses: ReadonlySet<string>
  /** There is no later look. */
  readonly isLastCheck: boolean
}

/** Another process with the same rules is about to tell: so long it is left to it. */
const SAME_RULES_DELAY_MS = 60_000
/** The same for processes with other rules, which may know the same destination. */
const OTHER_RULES_DELAY_MS = 10_000
/** People who did not hear by then that it is over are not told any more. */
const RESOLVED_NOTIFY_MAX_MS = 86_400_000

/**
 * Who is told what, by what they heard already. A destination hears of a cause at most once in the time after which it is
 * repeated, even if it comes and goes; and of its end only when it heard of it. `past`: resolved alerts, of late. Reads only
 * its arguments.
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
        const heard = notifiedAtOf(alert, context.destinations.get(to)!)
        const event = heard === null ? 'raised' : 'repeated'
        return { event, alert: { ...alert, because, command }, to, notifiedAt: heard }
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
  const heard = notifiedAtOf(alert, destination)
  if (heard !== null) return repeatMs !== null && now - heard >= repeatMs
  const before = alert.deliveries[destination]?.sentAt ?? -Infinity
  return (
    now - before >= (repeatMs ?? DEFAULT_REPEAT_MS) && mayNotify(alert, alert.since, context, now)
  )
}

/** When they heard of it in this time that it was so, not in an earlier one. */
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
    // A silent run that is dead now is not well again.
    if (newer.some((other) => other.resolvedAt === null)) return []
    const asking = context.rules.filter((rule) => rule.notifyResolved && ruleMatches(rule, alert))
    return [...new Set(asking.flatMap(({ to }) => to))]
      .filter((to) => {
        const destination = context.destinations.get(to)
        if (destination === undefined || notifiedAtOf(alert, destination) === null) return false
        if ((alert.deliveries[destination]?.endedAt ?? -Infinity) >= resolvedAt) return false
        // They hear of the end of what came after it.
        return newer.every((other) => notifiedAtOf(other, destination) === null)
      })
      .map((to) => ({ event: 'resolved', alert, to, notifiedAt: null }))
  })
}

/** It was so later. What began earlier and is still so is another matter. */
function isNewer(other: Alert, alert: Alert): boolean {
  if (other.cause === alert.cause || other.since < alert.since) return false
  return other.resolvedAt === null || other.resolvedAt > alert.resolvedAt!
}
