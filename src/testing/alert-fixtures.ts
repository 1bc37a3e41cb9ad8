import type { Alert, AlertCandidate } from '../features/alerts/store/store.ts'
import type { AlertKind, AlertRule, ChannelName } from '../features/alerts/rule.ts'
import { decideAlerts, matchAlerts, type AlertFacts } from '../features/alerts/decide.ts'
import { decideNotifications, type NotifierContext } from '../features/alerts/notify.ts'

/** One check of the alert service on invented facts, with the rows in memory. */

export const HOUR_MS = 3_600_000
export const NOW = 1_000 * HOUR_MS
export const RUN = '0199aaaa-0000-7000-8000-00004f2a91bc'
export const NO_FACTS: AlertFacts = { found: [], orphans: [] }

export type ProblemKind = 'dead' | 'silent' | 'overrun'
export const problemFacts = (
  what: ProblemKind,
  source = 'shop',
  because = 'so it is',
): AlertFacts => ({
  ...NO_FACTS,
  found: [{ ...finding(what, RUN), run: RUN, source, because }],
})
export const finding = (rule: AlertKind, about: string): AlertCandidate => ({
  cause: `${rule} ${about}`,
  rule,
  source: 'shop',
  run: null,
  because: 'so it is',
  command: 'unstuck explain 4f2a91bc',
})
export const makeRule = (
  when: Exclude<AlertRule['when'], 'orphans'>,
  more: Partial<AlertRule> = {},
) =>
  ({
    when,
    sources: [],
    to: ['slack'],
    repeatMs: 4 * HOUR_MS,
    notifyResolved: true,
    ...more,
  }) as AlertRule
export const orphanRule = (moreThan: number, more: Partial<AlertRule> = {}): AlertRule => ({
  ...makeRule('dead', more),
  when: 'orphans',
  moreThan,
  withinMs: HOUR_MS,
})

/** `sentAt`: when it was sent to Slack. */
export const knownAlert = (
  cause: string,
  { sentAt = NOW - HOUR_MS, ...more }: Partial<Alert> & { sentAt?: number | null } = {},
): Alert => ({
  cause,
  owner: 'us',
  rule: cause.split(' ')[0]!,
  source: 'shop',
  run: RUN,
  because: 'so it is',
  command: '',
  since: NOW - HOUR_MS,
  lastSeenAt: NOW,
  lastSentAt: sentAt,
  deliveries: sentAt === null ? {} : { 'slack 1': { sentAt, endedAt: null } },
  resolvedAt: null,
  ...more,
})

const notifier = (rules: readonly AlertRule[], mine: Iterable<string> = []): NotifierContext => ({
  owner: 'us',
  rules,
  destinations: new Map<ChannelName, string>([
    ['slack', 'slack 1'],
    ['email', 'email 1'],
  ]),
  ownCauses: new Set(mine),
  isLastCheck: false,
})

/** Makes one check. Returns the rows afterwards and the notifications. */
export function evaluateAlerts(
  facts: AlertFacts,
  rules: readonly AlertRule[],
  before: readonly Alert[],
  now = NOW,
) {
  const found = matchAlerts(facts, rules, now)
  const open = before.filter(({ resolvedAt }) => resolvedAt === null)
  const { raise, refresh, resolve } = decideAlerts(found, rules, 'us', open, now)
  const rows = new Map(before.map((alert) => [alert.cause, alert]))
  for (const { to: _, repeatMs: __, ...one } of raise) {
    const deliveries = rows.get(one.cause)?.deliveries ?? {}
    const fresh = { owner: 'us', since: now, lastSeenAt: now, lastSentAt: null, resolvedAt: null }
    rows.set(one.cause, { ...one, ...fresh, deliveries })
  }
  for (const alert of resolve) rows.set(alert.cause, { ...alert, resolvedAt: now })
  const all = [...rows.values()]
  const mine = [...raise, ...resolve].map(({ cause }) => cause)
  const notifications = decideNotifications(
    found,
    all.filter(({ resolvedAt }) => resolvedAt === null),
    all.filter(({ resolvedAt }) => resolvedAt !== null),
    notifier(rules, mine),
    now,
  )
  return { raise, refresh, resolve, rows, notifications }
}

/** Returns the causes that changed or are notified. */
export function changedCauses({
  raise,
  resolve,
  notifications,
}: ReturnType<typeof evaluateAlerts>): Record<string, string[]> {
  const raised = new Set(raise.map(({ cause }) => cause))
  const sent = new Set(notifications.map(({ alert }) => alert.cause))
  const ends = notifications.filter(({ event }) => event === 'resolved')
  const endsTo = (of: string) => ends.filter(({ alert }) => alert.cause === of).map(({ to }) => to)
  const all = {
    raise: [...raised].map((cause) => (sent.has(cause) ? cause : `${cause} (not sent)`)),
    notify: notifications
      .filter(({ event, alert }) => event !== 'resolved' && !raised.has(alert.cause))
      .map(({ alert }) => alert.cause),
    resolve: resolve.map(({ cause }) => `${cause} → ${endsTo(cause).join()}`),
    end: ends
      .filter(({ alert }) => !resolve.some(({ cause }) => cause === alert.cause))
      .map(({ alert }) => alert.cause),
  }
  return Object.fromEntries(Object.entries(all).filter(([, some]) => some.length > 0))
}
