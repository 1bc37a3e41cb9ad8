import type { Alert } from '../../core/model/alert.ts'
import { DEFAULT_REPEAT_MS, type AlertRule, type ChannelName } from '../../core/model/alert-rule.ts'
import type { Millis } from '../../core/model/time.ts'
import { asksFor, type Found } from './decide.ts'

/** What those at one destination are to be told. */
export type Telling = {
  readonly event: 'raised' | 'repeated' | 'resolved'
  /** As it is kept, with what is known of it now. */
  readonly alert: Alert
  readonly to: ChannelName
  /** When they last heard that it is so; null: not yet. */
  readonly heardAt: Millis | null
}

/** Whoever looks, and whom they can tell. */
export type Teller = {
  readonly owner: string
  readonly rules: readonly AlertRule[]
  /** Channels that something can be sent through, and where each leads. */
  readonly destinations: ReadonlyMap<ChannelName, string>
  /** Causes that this process raised or resolved: nobody else is about to tell them. */
  readonly mine: ReadonlySet<string>
  /** There is no later look. */
  readonly isLast: boolean
}

/** Another process with the same rules is about to tell: so long it is left to it. */
const UNTOLD_MS = 60_000
/** The same for processes with other rules, which may know the same destination. */
const UNTOLD_BY_OTHERS_MS = 10_000
/** People who did not hear by then that it is over are not told any more. */
const END_MAX_MS = 86_400_000

/**
 * Who is told what, by what they heard already. A destination hears of a cause at most once in the time after which it is
 * repeated, even if it comes and goes; and of its end only when it heard of it. `past`: resolved alerts, of late. Reads only
 * its arguments.
 */
export function decideTellings(
  found: readonly Found[],
  open: readonly Alert[],
  past: readonly Alert[],
  teller: Teller,
  now: Millis,
): Telling[] {
  const byCause = new Map(open.map((alert) => [alert.cause, alert]))
  const tellings = found.flatMap((one): Telling[] => {
    const alert = byCause.get(one.cause)
    if (!alert) return []
    const { because, command } = one
    return one.to
      .filter((to) => isDue(one, alert, to, teller, now))
      .map((to) => {
        const heard = heardAt(alert, teller.destinations.get(to)!)
        const event = heard === null ? 'raised' : 'repeated'
        return { event, alert: { ...alert, because, command }, to, heardAt: heard }
      })
  })
  return [...tellings, ...endsOf(open, past, teller, now)]
}

function isDue(
  { repeatMs }: Found,
  alert: Alert,
  to: ChannelName,
  teller: Teller,
  now: Millis,
): boolean {
  const destination = teller.destinations.get(to)
  if (destination === undefined) return false
  const heard = heardAt(alert, destination)
  if (heard !== null) return repeatMs !== null && now - heard >= repeatMs
  const before = alert.told[destination]?.sentAt ?? -Infinity
  return (
    now - before >= (repeatMs ?? DEFAULT_REPEAT_MS) && isOurTurn(alert, alert.since, teller, now)
  )
}

/** When they heard of it in this time that it was so, not in an earlier one. */
function heardAt({ told, since }: Alert, destination: string): Millis | null {
  const at = told[destination]?.sentAt ?? null
  return at !== null && at >= since ? at : null
}

function isOurTurn(alert: Alert, happenedAt: Millis, teller: Teller, now: Millis): boolean {
  if (teller.mine.has(alert.cause)) return true
  if (alert.owner === teller.owner) return now - happenedAt >= UNTOLD_MS
  return teller.isLast || now - happenedAt >= UNTOLD_BY_OTHERS_MS
}

function endsOf(
  open: readonly Alert[],
  past: readonly Alert[],
  teller: Teller,
  now: Millis,
): Telling[] {
  const ofRun = Map.groupBy([...open, ...past], ({ run }) => run)
  return past.flatMap((alert): Telling[] => {
    const resolvedAt = alert.resolvedAt!
    if (now - resolvedAt > END_MAX_MS || !isOurTurn(alert, resolvedAt, teller, now)) return []
    const newer =
      alert.run === null ? [] : ofRun.get(alert.run)!.filter((other) => isNewer(other, alert))
    // A silent run that is dead now is not well again.
    if (newer.some((other) => other.resolvedAt === null)) return []
    const asking = teller.rules.filter((rule) => rule.tellsEnd && asksFor(rule, alert))
    return [...new Set(asking.flatMap(({ to }) => to))]
      .filter((to) => {
        const destination = teller.destinations.get(to)
        if (destination === undefined || heardAt(alert, destination) === null) return false
        if ((alert.told[destination]?.endedAt ?? -Infinity) >= resolvedAt) return false
        // They hear of the end of what came after it.
        return newer.every((other) => heardAt(other, destination) === null)
      })
      .map((to) => ({ event: 'resolved', alert, to, heardAt: null }))
  })
}

/** It was so later. What began earlier and is still so is another matter. */
function isNewer(other: Alert, alert: Alert): boolean {
  if (other.cause === alert.cause || other.since < alert.since) return false
  return other.resolvedAt === null || other.resolvedAt > alert.resolvedAt!
}
