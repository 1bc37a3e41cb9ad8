import type { Alert } from '../model/alert.ts'
import {
  DEFAULT_REPEAT_MS,
  type AlertKind,
  type AlertRule,
  type ChannelName,
} from '../model/alert-rule.ts'
import { shortId, type RunId } from '../model/id.ts'
import { inShort, inWords, type Millis } from '../model/time.ts'

/** What is the case now, as far as rules ask for it. */
export type AlertFacts = {
  /** Live runs that are not well, each by the worst that can be said of it. */
  readonly runs: readonly {
    readonly run: RunId
    readonly source: string
    readonly what: 'dead' | 'silent' | 'overrun'
    readonly because: string
    readonly command: string
  }[]
  /** Runs with parked targets that nobody has seen to. */
  readonly parked: readonly {
    readonly run: RunId
    readonly source: string
    readonly targets: number
    /** Of one of them. */
    readonly error: string | null
  }[]
  /** One for each worker that a run lost, since the longest time that a rule asks for. */
  readonly orphans: readonly { readonly at: Millis; readonly source: string }[]
  /** Commands that are not started again. */
  readonly gaveUp: readonly {
    readonly source: string
    readonly at: Millis
    readonly because: string
  }[]
}

/** Something that is the case, before anybody was told. */
type Finding = Pick<Alert, 'cause' | 'rule' | 'source' | 'run' | 'because' | 'command'>

/** A finding, and what the rules that ask for it say. */
export type Found = Finding & {
  readonly to: readonly ChannelName[]
  readonly repeatMs: number | null
}

export type AlertDecision = {
  /** It was not so before. `toldAt`: people heard of this cause not long ago, so they are not told once more. */
  readonly raise: readonly (Found & { readonly toldAt: Millis | null })[]
  /** It is open and people are to be told: again, or because whoever raised it never did. */
  readonly tell: readonly Found[]
  /** It is open and what is known of it has changed. */
  readonly refresh: readonly Found[]
  /** It is over. `to`: who is told so. */
  readonly resolve: readonly { readonly alert: Alert; readonly to: readonly ChannelName[] }[]
}

/** Whoever raised it is about to tell people: so long it is left to them. */
const UNTOLD_MS = 60_000
/** What is known of an open alert changes with the minutes. It is written down no more often. */
const REFRESH_MS = 60_000

/**
 * What people are told, by the rules and by what they know already. One cause is one alert, however many rules ask for it,
 * and is told at most once in the time after which it is repeated, even if it comes and goes. `known`: open alerts and
 * those that were resolved of late. Reads only its arguments.
 */
export function decideAlerts(
  facts: AlertFacts,
  rules: readonly AlertRule[],
  known: readonly Alert[],
  now: Millis,
): AlertDecision {
  const found = findAll(facts, rules, now)
  const open = new Map(known.filter(isOpen).map((alert) => [alert.cause, alert]))
  const past = new Map(known.filter((alert) => !isOpen(alert)).map((one) => [one.cause, one]))
  const stillSo = found.flatMap((one) => {
    const alert = open.get(one.cause)
    return alert ? [{ one, alert }] : []
  })
  return {
    raise: found
      .filter(({ cause }) => !open.has(cause))
      .map((one) => ({ ...one, toldAt: toldOfLate(past.get(one.cause), one, now) })),
    tell: stillSo.filter(({ one, alert }) => isDue(one, alert, now)).map(({ one }) => one),
    refresh: stillSo
      .filter(({ one, alert }) => alert.because !== one.because)
      .filter(({ alert }) => now - alert.lastSeenAt >= REFRESH_MS)
      .map(({ one }) => one),
    resolve: [...open.values()]
      .filter(({ cause }) => !found.some((one) => one.cause === cause))
      .map((alert) => ({ alert, to: wasTold(alert) ? endsToldTo(alert, rules) : [] })),
  }
}

function isOpen({ resolvedAt }: Alert): boolean {
  return resolvedAt === null
}

function isDue({ to, repeatMs }: Found, { since, lastSentAt }: Alert, now: Millis): boolean {
  if (to.length === 0) return false
  if (lastSentAt === null) return now - since >= UNTOLD_MS
  return repeatMs !== null && now - lastSentAt >= repeatMs
}

function toldOfLate(past: Alert | undefined, { repeatMs }: Found, now: Millis): Millis | null {
  const at = past?.lastSentAt ?? null
  return at !== null && now - at < (repeatMs ?? DEFAULT_REPEAT_MS) ? at : null
}

/** In this time that it was so, not in an earlier one. */
function wasTold({ since, lastSentAt }: Alert): boolean {
  return lastSentAt !== null && lastSentAt >= since
}

function endsToldTo(alert: Alert, rules: readonly AlertRule[]): ChannelName[] {
  const asking = rules.filter((rule) => rule.tellsEnd && asksFor(rule, alert))
  return [...new Set(asking.flatMap(({ to }) => to))]
}

/** A run beyond its duration is also one that a rule for silent runs means. */
function asksFor(rule: AlertRule, { cause, rule: kind, source }: Finding): boolean {
  if (rule.when === 'orphans') return cause === orphansCause(rule)
  const isKind = rule.when === kind || (rule.when === 'silent' && kind === 'overrun')
  return isKind && isMeant(rule, source ?? '')
}

function isMeant({ sources }: AlertRule, source: string): boolean {
  return sources.length === 0 || sources.includes(source)
}

function findAll(facts: AlertFacts, rules: readonly AlertRule[], now: Millis): Found[] {
  const single = [
    ...facts.runs.map(({ what, ...run }) => finding(what, run.run, run)),
    ...facts.parked.map(parkedTargets),
    ...facts.gaveUp.map(({ source, at, because }) =>
      finding('gave-up', `${source} ${at}`, { source, because, command: `unstuck logs ${source}` }),
    ),
  ]
  const found = rules.flatMap((rule): Found[] => {
    const findings =
      rule.when === 'orphans'
        ? manyOrphans(rule, facts.orphans, now)
        : single.filter((one) => asksFor(rule, one))
    return findings.map((one) => ({ ...one, to: rule.to, repeatMs: rule.repeatMs }))
  })
  return [...Map.groupBy(found, ({ cause }) => cause).values()].map(asOne)
}

/** Everybody is told whom any of the rules names, as often as the most insistent of them says. */
function asOne(same: readonly Found[]): Found {
  const times = same.map(({ repeatMs }) => repeatMs).filter((ms) => ms !== null)
  return {
    ...same[0]!,
    to: [...new Set(same.flatMap(({ to }) => to))],
    repeatMs: times.length === 0 ? null : Math.min(...times),
  }
}

function finding(
  rule: AlertKind,
  about: string,
  { run = null, ...one }: Pick<Finding, 'source' | 'because' | 'command'> & { run?: RunId | null },
): Finding {
  return { ...one, cause: `${rule} ${about}`, rule, run }
}

/** Of a run as a whole: one that parks thousands is one thing to see to. */
function parkedTargets({ run, source, targets, error }: AlertFacts['parked'][number]): Finding {
  const count =
    targets === 1 ? 'one target is parked' : `${targets} targets are parked, one of them`
  const because = `${count}: ${error ?? 'why is not known'}`
  const command = `unstuck unpark --run ${shortId(run)}`
  return finding('parked', run, { run, source, because, command })
}

type OrphansRule = Extract<AlertRule, { when: 'orphans' }>

function manyOrphans(rule: OrphansRule, orphans: AlertFacts['orphans'], now: Millis): Finding[] {
  const { moreThan, withinMs } = rule
  const counted = orphans.filter(({ at, source }) => at > now - withinMs && isMeant(rule, source))
  if (counted.length <= moreThan) return []
  const sources = [...new Set(counted.map(({ source }) => source))].sort()
  const because =
    `runs lost a worker ${counted.length} times within ${inWords(withinMs)}, ` +
    `more than ${moreThan} times: ${sources.slice(0, SOURCES_SHOWN).join(', ')}` +
    (sources.length > SOURCES_SHOWN ? ` and ${sources.length - SOURCES_SHOWN} more` : '')
  const command = `unstuck history --since ${inShort(withinMs)}`
  const source = sources.length === 1 ? sources[0]! : null
  return [{ cause: orphansCause(rule), rule: 'orphans', source, run: null, because, command }]
}

const SOURCES_SHOWN = 3

function orphansCause({ moreThan, withinMs, sources }: OrphansRule): string {
  const whose = sources.length === 0 ? '' : ` ${JSON.stringify(sources)}`
  return `orphans ${moreThan}/${inShort(withinMs)}${whose}`
}
