import { ALERT_OWNER_TIMEOUT_MS, type Alert, type AlertCandidate } from './store/store.ts'
import type { AlertRule, ChannelName } from './rule.ts'
import type { Millis } from '../../core/model/time.ts'
import { orphansCandidate, orphansCause, type LostWorker } from '../../presenters/orphan-alerts.ts'

/** What the rules are matched with. */
export type AlertFacts = {
  readonly found: readonly AlertCandidate[]
  /** One for each worker that a run lost, within the longest interval of a rule. */
  readonly orphans: readonly LostWorker[]
}

/** A finding, with the channels and the interval of the rules that match it. */
export type MatchedAlert = AlertCandidate & {
  readonly to: readonly ChannelName[]
  readonly repeatMs: number | null
}

export type AlertDecision = {
  /** Not open yet. */
  readonly raise: readonly MatchedAlert[]
  /** Open, with its current reason and command. */
  readonly refresh: readonly MatchedAlert[]
  /** No longer the case. */
  readonly resolve: readonly Alert[]
}

/** The reason of an open alert is stored at most this often. */
const REFRESH_INTERVAL_MS = 60_000
/** An alert whose rule no process has any more is resolved after this time. */
const FORGET_AFTER_MS = 600_000

/**
 * Decides which alerts to raise, refresh and resolve. One cause is one alert, however many rules match it. Several configs
 * may use one database: each resolves its own alerts, and those of others that no process has seen for minutes. `open`: the
 * alerts of all. Reads only its arguments.
 */
export function decideAlerts(
  matched: readonly MatchedAlert[],
  rules: readonly AlertRule[],
  owner: string,
  open: readonly Alert[],
  now: Millis,
): AlertDecision {
  const byCause = new Map(open.map((alert) => [alert.cause, alert]))
  const matchedCauses = new Set(matched.map(({ cause }) => cause))
  const unseenMs = ({ lastSeenAt }: Alert): number => now - lastSeenAt
  const isOurs = (alert: Alert): boolean =>
    alert.owner === owner || unseenMs(alert) >= ALERT_OWNER_TIMEOUT_MS
  const hasMatchingRule = (alert: Alert): boolean => rules.some((rule) => ruleMatches(rule, alert))
  return {
    raise: matched.filter(({ cause }) => !byCause.has(cause)),
    refresh: matched.filter(({ cause }) => {
      const alert = byCause.get(cause)
      return alert !== undefined && isOurs(alert) && unseenMs(alert) >= REFRESH_INTERVAL_MS
    }),
    resolve: open
      .filter(({ cause }) => !matchedCauses.has(cause))
      .filter(
        (alert) => isOurs(alert) && (hasMatchingRule(alert) || unseenMs(alert) >= FORGET_AFTER_MS),
      ),
  }
}

/** A run beyond its duration is also one that a rule for silent runs means. */
export function ruleMatches(
  rule: AlertRule,
  { cause, rule: kind, source }: AlertCandidate,
): boolean {
  if (rule.when === 'orphans') return cause === orphansCause(rule)
  const isKind = rule.when === kind || (rule.when === 'silent' && kind === 'overrun')
  return isKind && coversSource(rule, source ?? '')
}

function coversSource({ sources }: AlertRule, source: string): boolean {
  return sources.length === 0 || sources.includes(source)
}

/** Returns the findings that a rule matches. */
export function matchAlerts(
  { found, orphans }: AlertFacts,
  rules: readonly AlertRule[],
  now: Millis,
): MatchedAlert[] {
  const matched = rules.flatMap((rule): MatchedAlert[] => {
    const findings =
      rule.when === 'orphans'
        ? [orphansCandidate(rule, orphans, now)].filter((one) => one !== null)
        : found.filter((one) => ruleMatches(rule, one))
    return findings.map((one) => ({ ...one, to: rule.to, repeatMs: rule.repeatMs }))
  })
  return [...Map.groupBy(matched, ({ cause }) => cause).values()].map(mergeMatches)
}

/** Merges the rules that match a finding: all their channels, and the shortest interval. */
function mergeMatches(same: readonly MatchedAlert[]): MatchedAlert {
  const times = same.map(({ repeatMs }) => repeatMs).filter((ms) => ms !== null)
  return {
    ...same[0]!,
    to: [...new Set(same.flatMap(({ to }) => to))],
    repeatMs: times.length === 0 ? null : Math.min(...times),
  }
}
