import {
  ALERT_KINDS,
  CHANNEL_NAMES,
  DEFAULT_REPEAT_MS,
  DEFAULT_RULES,
  type AlertKind,
  type AlertRule,
  type ChannelName,
} from '../../core/model/alert-rule.ts'
import { checkFields, isObject, didYouMean } from '../../core/model/fields.ts'
import { sourceMistake } from '../../core/model/source.ts'
import { parseDuration, type Duration } from '../../core/model/time.ts'
import type { EmailSettings } from './email.ts'
import type { WebhookSettings } from './post.ts'

/** One of `alerts` in the config. */
export type AlertOptions = {
  /** Only of these sources. @default all */
  sources?: readonly string[] | undefined
  /** Channels to notify. @default none: the dashboard shows it */
  to?: readonly ChannelName[] | undefined
  /** Notify again after this long, while the cause lasts; at least 1m. @default '4h' */
  repeat?: Duration | 'never' | undefined
  /** Whether to notify when the cause is gone. @default true */
  resolved?: boolean | undefined
} & (
  | {
      when: 'orphans'
      /** How many orphans are still no alert. @default 3 */
      moreThan?: number | undefined
      /** In which time they are counted; at most 7d. @default '1h' */
      within?: Duration | undefined
    }
  | { when: Exclude<AlertKind, 'orphans'> }
)

type WebhookOptions = {
  /** Undefined (its environment variable is not set): a warning, and nothing is sent. */
  url: string | undefined
  /** It may be on a private network. */
  allowPrivate?: boolean | undefined
  allowHttp?: boolean | undefined
}

/** `channels` in the config. */
export type ChannelOptions = {
  slack?: WebhookOptions | undefined
  email?: { smtp: string | undefined; from: string; to: readonly string[] } | undefined
  /** `secret`: messages are signed with it. */
  webhook?: (WebhookOptions & { secret?: string | undefined }) | undefined
}

/** What the config says about alerts, found correct. */
export type AlertSettings = {
  /** False: the default rules count, which only the dashboard shows. */
  readonly areConfigured: boolean
  readonly rules: readonly AlertRule[]
  /** Set up, but without an address: its environment variable is not set here. */
  readonly missing: readonly ChannelName[]
  /** Null: not set up, or missing. */
  readonly channels: {
    readonly slack: WebhookSettings | null
    readonly email: EmailSettings | null
    readonly webhook: (WebhookSettings & { readonly secret: string | null }) | null
  }
}

/** Adds to `mistakes` and `warnings`. No mistake repeats what was written as an address or a secret. */
export function readAlerts(
  alerts: unknown,
  channels: unknown,
  mistakes: string[],
  warnings: string[],
): AlertSettings {
  const options = checkFields('channels', channels ?? {}, CHANNEL_NAMES, mistakes)
  const configured = CHANNEL_NAMES.filter((name) => options[name] !== undefined)
  if (alerts !== undefined && !Array.isArray(alerts))
    mistakes.push('alerts must be a list of rules')
  const list: unknown[] = Array.isArray(alerts) ? alerts : []
  const rules = list.map((rule, n) => readRule(`alerts[${n}]`, rule, configured, mistakes))
  const { slack, email, webhook } = options
  const read = {
    slack: slack === undefined ? null : readUrlChannel('slack', slack, mistakes, warnings),
    email: email === undefined ? null : readEmail(email, mistakes, warnings),
    webhook: webhook === undefined ? null : readWebhook(webhook, mistakes, warnings),
  }
  return {
    areConfigured: alerts !== undefined,
    rules: alerts === undefined ? DEFAULT_RULES : rules,
    missing: configured.filter((name) => read[name] === null),
    channels: read,
  }
}

const COMMON_FIELDS = ['when', 'sources', 'to', 'repeat', 'resolved']
const REPEAT_MIN_MS = 60_000
const WITHIN_MAX_MS = 7 * 86_400_000

function readRule(
  path: string,
  given: unknown,
  configured: readonly ChannelName[],
  mistakes: string[],
): AlertRule {
  const when = isObject(given) ? given['when'] : undefined
  const names = when === 'orphans' ? [...COMMON_FIELDS, 'moreThan', 'within'] : COMMON_FIELDS
  const {
    sources = [],
    to = [],
    repeat,
    resolved = true,
    ...more
  } = checkFields(path, given, names, mistakes)
  const addMistake = (what: string): void => void mistakes.push(`${path}.${what}`)
  if (isObject(given) && !isOneOf(when, ALERT_KINDS))
    addMistake(`when must be one of ${ALERT_KINDS.join(', ')}${didYouMean(when, ALERT_KINDS)}`)
  if (!isListOf(sources, (one) => sourceMistake(one) === null))
    addMistake('sources must be a list of names of sources')
  if (!Array.isArray(to)) addMistake('to must be a list of channels')
  for (const name of Array.isArray(to) ? to : []) {
    if (isOneOf(name, configured)) continue
    if (isOneOf(name, CHANNEL_NAMES)) addMistake(`to names ${name}, which channels does not set up`)
    else
      addMistake(
        `to has a name that is no channel; there are ${CHANNEL_NAMES.join(', ')}${didYouMean(name, CHANNEL_NAMES)}`,
      )
  }
  const repeatMs = repeat === undefined ? DEFAULT_REPEAT_MS : parseDuration(repeat)
  if (repeat !== 'never' && (repeatMs === null || repeatMs < REPEAT_MIN_MS))
    addMistake("repeat must be a duration from 1m on, as in '4h', or 'never'")
  if (typeof resolved !== 'boolean') addMistake('resolved must be true or false')
  const rule = {
    sources: isListOf(sources, isString) ? sources : [],
    to: Array.isArray(to) ? CHANNEL_NAMES.filter((name) => to.includes(name)) : [],
    repeatMs: repeat === 'never' ? null : repeatMs,
    notifyResolved: resolved !== false,
  }
  if (when !== 'orphans') return { ...rule, when: when as 'dead' }
  const { moreThan = 3, within = '1h' } = more
  if (!Number.isInteger(moreThan) || (moreThan as number) < 0)
    addMistake('moreThan must be a whole number from 0 on')
  const withinMs = parseDuration(within)
  if (withinMs === null || withinMs < 1_000 || withinMs > WITHIN_MAX_MS)
    addMistake("within must be a duration up to 7d, as in '1h'")
  return { ...rule, when, moreThan: moreThan as number, withinMs: withinMs ?? 0 }
}

const WEBHOOK_FIELDS = ['url', 'allowPrivate', 'allowHttp']

function readUrlChannel(
  name: ChannelName,
  given: unknown,
  mistakes: string[],
  warnings: string[],
  more: readonly string[] = [],
): WebhookSettings | null {
  const path = `channels.${name}`
  const { url, ...allowed } = checkFields(path, given, [...WEBHOOK_FIELDS, ...more], mistakes)
  const { allowPrivate = false, allowHttp = false } = allowed
  for (const [option, value] of Object.entries({ allowPrivate, allowHttp })) {
    if (typeof value !== 'boolean') mistakes.push(`${path}.${option} must be true or false`)
  }
  if (!isObject(given) || !isSet(`${path}.url`, url, warnings)) return null
  const protocol = isString(url) ? URL.parse(url)?.protocol : undefined
  if (protocol === 'http:' && allowHttp !== true)
    mistakes.push(`${path}.url must begin with https://; allowHttp: true allows http://`)
  else if (protocol !== 'https:' && protocol !== 'http:')
    mistakes.push(`${path}.url must be an address that begins with https://`)
  return { url: String(url), allowPrivate: allowPrivate === true, allowHttp: allowHttp === true }
}

function readWebhook(
  given: unknown,
  mistakes: string[],
  warnings: string[],
): AlertSettings['channels']['webhook'] {
  const hook = readUrlChannel('webhook', given, mistakes, warnings, ['secret'])
  const secret = isObject(given) ? given['secret'] : undefined
  const path = 'channels.webhook.secret'
  if (isObject(given) && 'secret' in given && !hasValue(secret))
    warnings.push(`${path} is not set: messages are not signed.`)
  if (hasValue(secret) && !isString(secret)) mistakes.push(`${path} must be text`)
  return hook && { ...hook, secret: hasValue(secret) ? String(secret) : null }
}

function readEmail(given: unknown, mistakes: string[], warnings: string[]): EmailSettings | null {
  const path = 'channels.email'
  const { smtp, from, to } = checkFields(path, given, ['smtp', 'from', 'to'], mistakes)
  if (!isObject(given)) return null
  if (!isMailAddress(from)) mistakes.push(`${path}.from must be the address of a sender`)
  if (!isListOf(to, isMailAddress) || to.length === 0)
    mistakes.push(`${path}.to must be a list of addresses`)
  if (!isSet(`${path}.smtp`, smtp, warnings)) return null
  const url = isString(smtp) ? URL.parse(smtp) : null
  if (!url?.hostname || !['smtp:', 'smtps:'].includes(url.protocol))
    mistakes.push(`${path}.smtp must be like smtps://user:password@mail.example:465`)
  return { smtp: String(smtp), from: String(from), to: isListOf(to, isString) ? to : [] }
}

/** An address that is missing is no mistake: the same config runs where the environment lacks it. */
function isSet(path: string, value: unknown, warnings: string[]): boolean {
  if (hasValue(value)) return true
  warnings.push(`${path} is not set: nothing is sent there.`)
  return false
}

function isString(value: unknown): value is string {
  return typeof value === 'string'
}

function hasValue(value: unknown): boolean {
  return value !== undefined && value !== null && value !== ''
}

function isOneOf<T extends string>(value: unknown, names: readonly T[]): value is T {
  return (names as readonly unknown[]).includes(value)
}

function isListOf(value: unknown, isRight: (one: unknown) => boolean): value is string[] {
  return Array.isArray(value) && value.every(isRight)
}

/** Enough to keep a second header out of a mail. */
function isMailAddress(value: unknown): boolean {
  return (
    isString(value) && /^[^\p{Cc}]*[^\s\p{Cc}]@[^\s\p{Cc}]+$/u.test(value) && value.length <= 320
  )
}
