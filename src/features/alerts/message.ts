import { hash } from 'node:crypto'
import type { AlertKind, ChannelName } from './rule.ts'
import type { Alert } from './store/store.ts'
import { shortId } from '../../core/model/id.ts'
import { redact } from '../../core/model/redact.ts'
import { safeText } from '../../lib/text/safe-text.ts'
import type { Notification } from './notify.ts'

/** A message about one alert, or about many of one kind. */
export type AlertMessage = {
  readonly event: 'raised' | 'repeated' | 'resolved' | 'test'
  /** The same for every attempt at the same notification, in any process. */
  readonly key: string
  readonly alert: Pick<Alert, 'cause' | 'rule' | 'source' | 'run' | 'because' | 'command' | 'since'>
  /** How its run is named; omitted: by its id. */
  readonly runName?: string
  /** The causes of all alerts that a digest stands for; `alert` is then their summary. */
  readonly causes?: readonly string[]
  /** The page of the dashboard; null if the config has no `url`. */
  readonly link: string | null
}

/** A message as lines of text that are safe to display. */
export type FormattedMessage = {
  /** Short enough for the subject of a mail. */
  readonly headline: string
  readonly because: string
  /** The command to run; null when the alert is resolved. */
  readonly command: string | null
  readonly link: string | null
}

const HEADLINE_MAX = 150
const BECAUSE_MAX = 1_000
const COMMAND_MAX = 300

export function formatMessage(message: AlertMessage): FormattedMessage {
  const { event, alert, link } = message
  const prefix = { raised: '', repeated: 'still: ', resolved: 'resolved: ', test: '' }[event]
  return {
    headline: cleanLine(prefix + subjectOf(message), HEADLINE_MAX),
    because: cleanLine(alert.because, BECAUSE_MAX),
    command: event === 'resolved' ? null : cleanLine(alert.command, COMMAND_MAX),
    link,
  }
}

/** The subject of one alert, with its run and source, and that of many. */
const SUBJECTS: Readonly<
  Record<
    AlertKind,
    readonly [(run: string, source: string | null) => string, (n: number) => string]
  >
> = {
  dead: [(run) => `dead run${run}`, (n) => `${n} dead runs`],
  silent: [(run) => `silent run${run}`, (n) => `${n} silent runs`],
  overrun: [
    (run) => `run${run} exceeds its maximum duration`,
    (n) => `${n} runs exceed their maximum duration`,
  ],
  parked: [(run) => `parked targets in run${run}`, (n) => `parked targets in ${n} runs`],
  orphans: [
    (run) => `runs${run} lose their workers too often`,
    (n) => `runs lose their workers too often, by ${n} rules`,
  ],
  'gave-up': [
    (_, source) => `gave up on ${source ?? 'a command'}`,
    (n) => `gave up on ${n} commands`,
  ],
}

function subjectOf({ alert: { rule, run, source }, runName, causes }: AlertMessage): string {
  if (!Object.hasOwn(SUBJECTS, rule)) return 'a test of this channel'
  const [one, many] = SUBJECTS[rule as AlertKind]
  if (causes) return many(causes.length)
  const ofSource = source === null ? '' : ` of ${source}`
  return one(run === null ? ofSource : ` ${runName ?? shortId(run)}${ofSource}`, source)
}

function cleanLine(text: string, max: number): string {
  const safe = safeText(redact(text))
  return safe.length <= max ? safe : `${safe.slice(0, max - 1).toWellFormed()}…`
}

/** A message, its channel, and the causes that it reports. */
export type AlertDelivery = {
  readonly to: ChannelName
  readonly causes: readonly string[]
  readonly message: AlertMessage
}

/** More alerts of one kind become one message. */
const SINGLE_MAX = 10
const EXAMPLES = 3
const EXAMPLE_MAX = 200

/** Turns the notifications of one check into messages. Many of one kind become a digest. */
export function composeDeliveries(
  notifications: readonly Notification[],
  url: string | null,
): AlertDelivery[] {
  const kinds = Map.groupBy(notifications, ({ to, event, alert }) => `${to} ${event} ${alert.rule}`)
  return [...kinds.values()].flatMap((same) =>
    same.length > SINGLE_MAX
      ? [digestDelivery(same, url)]
      : same.map((one) => singleDelivery(one, url)),
  )
}

function singleDelivery(notification: Notification, url: string | null): AlertDelivery {
  const { event, alert, to } = notification
  const key = keyOf(notification)
  return {
    to,
    causes: [alert.cause],
    message: { event, key, alert, link: linkTo(url, alert) },
  }
}

function digestDelivery(same: readonly Notification[], url: string | null): AlertDelivery {
  const [{ event, alert, to }] = same as [Notification]
  const causes = same.map((one) => one.alert.cause).sort()
  const examples = same.slice(0, EXAMPLES).map((one) => {
    const { source, because } = one.alert
    return `${source ?? 'several'}: ${because.slice(0, EXAMPLE_MAX).toWellFormed()}`
  })
  const key = fingerprint(same.map(keyOf).sort())
  const summary = {
    cause: `many ${alert.rule} ${key}`,
    rule: alert.rule,
    source: null,
    run: null,
    because: `${examples.join('; ')} and ${same.length - EXAMPLES} more`,
    command: 'unstuck alerts list',
    since: Math.min(...same.map((one) => one.alert.since)),
  }
  return { to, causes, message: { event, key, alert: summary, causes, link: linkTo(url, null) } }
}

/** Depends on the last delivery, so that any process that repeats the notification uses the same key. */
function keyOf({ event, alert, notifiedAt }: Notification): string {
  return fingerprint([alert.cause, alert.since, event, notifiedAt])
}

function fingerprint(of: readonly unknown[]): string {
  return hash('sha256', JSON.stringify(of)).slice(0, 32)
}

/** The page of the dashboard that shows more. */
function linkTo(url: string | null, about: Pick<Alert, 'run' | 'rule'> | null): string | null {
  if (url === null) return null
  const page =
    about === null ? '' : about.run !== null ? `runs/${about.run}` : (PAGES[about.rule] ?? '')
  return new URL(page, url.endsWith('/') ? url : `${url}/`).href
}

const PAGES: Readonly<Record<string, string>> = { orphans: 'history' }
