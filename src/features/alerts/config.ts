import * as v from 'valibot'
import {
  ALERT_KINDS,
  CHANNEL_NAMES,
  DEFAULT_REPEAT_MS,
  DEFAULT_RULES,
  type AlertKind,
  type AlertRule,
  type ChannelName,
} from './rule.ts'
import { closest } from '../../core/model/closest.ts'
import { isObject } from '../../core/model/fields.ts'
import { sourceMistake } from '../../lib/validate/source.ts'
import { parseDuration, type Duration } from '../../core/model/time.ts'
import {
  flag,
  integerBetween,
  nameHint,
  object,
  text,
  validate,
  type Schema,
} from '../../lib/validate/validate.ts'
import type { EmailSettings } from './mail.ts'
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
      /** What to notify of. */
      when: 'orphans'
      /** How many orphans are still no alert. @default 3 */
      moreThan?: number | undefined
      /** In which time they are counted; at most 7d. @default '1h' */
      within?: Duration | undefined
    }
  | {
      /** What to notify of. */
      when: Exclude<AlertKind, 'orphans'>
    }
)

/** The address that notifications are sent to. */
export type WebhookOptions = {
  /** Undefined (its environment variable is not set): a warning, and nothing is sent. */
  url: string | undefined
  /** Whether it may be on a private network. @default false */
  allowPrivate?: boolean | undefined
  /** Whether it may be without encryption. @default false */
  allowHttp?: boolean | undefined
}

/** `channels` in the config. */
export type ChannelOptions = {
  /** An incoming webhook of Slack. @default none */
  slack?: WebhookOptions | undefined
  /**
   * A mail server, as in `smtps://user:password@host`, the sender and the recipients. Needs the package `nodemailer`.
   * @default none
   */
  email?: { smtp: string | undefined; from: string; to: readonly string[] } | undefined
  /** Any other address. Messages are signed with `secret`. @default none */
  webhook?: (WebhookOptions & { secret?: string | undefined }) | undefined
}

/** The validated alert settings of the config. */
export type AlertSettings = {
  /** False: the default rules apply, which only the dashboard shows. */
  readonly areConfigured: boolean
  readonly rules: readonly AlertRule[]
  /** Channels without an address: the environment variable is not set here. */
  readonly missing: readonly ChannelName[]
  /** Null: not configured, or missing. */
  readonly channels: {
    readonly slack: WebhookSettings | null
    readonly email: EmailSettings | null
    readonly webhook: (WebhookSettings & { readonly secret: string | null }) | null
  }
}

/** Validates `alerts` and `channels`. Adds to `mistakes` and `warnings`; no mistake repeats an address or a secret. */
export function readAlerts(
  alerts: unknown,
  channels: unknown,
  mistakes: string[],
  warnings: string[],
): AlertSettings {
  check(CHANNELS, channels ?? {}, 'channels', mistakes)
  const given = isObject(channels) ? channels : {}
  const configured = CHANNEL_NAMES.filter((name) => given[name] !== undefined)
  if (alerts !== undefined && !Array.isArray(alerts))
    mistakes.push('alerts must be a list of rules')
  const list: unknown[] = Array.isArray(alerts) ? alerts : []
  const rules = list.flatMap(
    (rule, n) => readRule(`alerts[${n}]`, rule, configured, mistakes) ?? [],
  )
  const { slack, email, webhook } = given
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

/** Returns the validated value, or adds to `mistakes`. */
function check<S extends Schema>(
  schema: S,
  value: unknown,
  at: string,
  mistakes: string[],
): v.InferOutput<S> | undefined {
  const read = validate(schema, value, { whole: at, at })
  mistakes.push(...read.mistakes)
  return read.value
}

const REPEAT_MIN_MS = 60_000
const WITHIN_MAX_MS = 7 * 86_400_000

const duration = (rule: string, minMs: number, maxMs = Infinity) =>
  v.custom<Duration>((value) => {
    const ms = parseDuration(value)
    return ms !== null && ms >= minMs && ms <= maxMs
  }, rule)

const ruleFields = (configured: readonly ChannelName[]) => ({
  when: v.picklist(ALERT_KINDS, ({ input }) => {
    const meant = typeof input === 'string' ? closest(input, ALERT_KINDS) : null
    return `must be one of ${ALERT_KINDS.join(', ')}${meant ? `; did you mean ${meant}?` : ''}`
  }),
  sources: v.optional(
    v.custom<string[]>(
      (value) => isListOf(value, (one) => sourceMistake(one) === null),
      'must be a list of names of sources',
    ),
    [],
  ),
  to: v.optional(
    v.array(
      v.custom<ChannelName>(
        (name) => isOneOf(name, configured),
        ({ input }) =>
          isOneOf(input, CHANNEL_NAMES)
            ? `is ${input}, which channels does not set up`
            : `is no channel; ${nameHint(input, CHANNEL_NAMES)}`,
      ),
      'must be a list of channels',
    ),
    [],
  ),
  repeat: v.optional(
    v.union(
      [v.literal('never'), duration('', REPEAT_MIN_MS)],
      "must be a duration from 1m on, as in '4h', or 'never'",
    ),
  ),
  resolved: v.optional(flag, true),
})

const ORPHAN_SCHEMA = object({
  moreThan: v.optional(integerBetween(0)),
  within: v.optional(duration("must be a duration up to 7d, as in '1h'", 1_000, WITHIN_MAX_MS)),
})

function readRule(
  at: string,
  given: unknown,
  configured: readonly ChannelName[],
  mistakes: string[],
): AlertRule | undefined {
  const isOrphans = isObject(given) && given['when'] === 'orphans'
  const fields = ruleFields(configured)
  const schema = object(isOrphans ? { ...fields, ...ORPHAN_SCHEMA.entries } : fields)
  const read = check(schema, given, at, mistakes)
  if (!read) return undefined
  const { when, sources, to, repeat, resolved } = read
  const rule = {
    sources,
    to: CHANNEL_NAMES.filter((name) => to.includes(name)),
    repeatMs: repeat === undefined ? DEFAULT_REPEAT_MS : parseDuration(repeat),
    notifyResolved: resolved,
  }
  if (when !== 'orphans') return { ...rule, when }
  const { moreThan = 3, within = '1h' } = read as v.InferOutput<typeof ORPHAN_SCHEMA>
  return { ...rule, when, moreThan, withinMs: parseDuration(within)! }
}

const ANY = v.optional(v.unknown())
const CHANNELS = object({ slack: ANY, email: ANY, webhook: ANY })
const SLACK = object({ url: ANY, allowPrivate: v.optional(flag), allowHttp: v.optional(flag) })
const WEBHOOK = object({ ...SLACK.entries, secret: v.optional(v.nullable(text)) })
const EMAIL = object({
  smtp: ANY,
  from: v.custom<string>(isMailAddress, 'must be the address of a sender'),
  to: v.custom<string[]>(
    (value) => isListOf(value, isMailAddress) && value.length > 0,
    'must be a list of addresses',
  ),
})

function readUrlChannel(
  name: 'slack' | 'webhook',
  given: unknown,
  mistakes: string[],
  warnings: string[],
): WebhookSettings | null {
  const at = `channels.${name}`
  check(name === 'slack' ? SLACK : WEBHOOK, given, at, mistakes)
  if (!isObject(given) || !isSet(`${at}.url`, given['url'], warnings)) return null
  const { url, allowPrivate, allowHttp } = given
  const protocol = typeof url === 'string' ? URL.parse(url)?.protocol : undefined
  if (protocol === 'http:' && allowHttp !== true)
    mistakes.push(`${at}.url must begin with https://; allowHttp: true allows http://`)
  else if (protocol !== 'https:' && protocol !== 'http:')
    mistakes.push(`${at}.url must be an address that begins with https://`)
  return { url: String(url), allowPrivate: allowPrivate === true, allowHttp: allowHttp === true }
}

function readWebhook(
  given: unknown,
  mistakes: string[],
  warnings: string[],
): AlertSettings['channels']['webhook'] {
  const hook = readUrlChannel('webhook', given, mistakes, warnings)
  const secret = isObject(given) ? given['secret'] : undefined
  if (isObject(given) && 'secret' in given && !hasValue(secret))
    warnings.push('channels.webhook.secret is not set: messages are not signed.')
  return hook && { ...hook, secret: hasValue(secret) ? String(secret) : null }
}

function readEmail(given: unknown, mistakes: string[], warnings: string[]): EmailSettings | null {
  const at = 'channels.email'
  const read = check(EMAIL, given, at, mistakes)
  if (!isObject(given) || !isSet(`${at}.smtp`, given['smtp'], warnings)) return null
  const smtp = String(given['smtp'])
  const url = URL.parse(smtp)
  if (!url?.hostname || !['smtp:', 'smtps:'].includes(url.protocol))
    mistakes.push(`${at}.smtp must be like smtps://user:password@mail.example:465`)
  return { smtp, from: read?.from ?? '', to: read?.to ?? [] }
}

/** A missing address is a warning: the same config may run where the environment lacks it. */
function isSet(path: string, value: unknown, warnings: string[]): boolean {
  if (hasValue(value)) return true
  warnings.push(`${path} is not set: nothing is sent there.`)
  return false
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
    typeof value === 'string' &&
    /^[^\p{Cc}]*[^\s\p{Cc}]@[^\s\p{Cc}]+$/u.test(value) &&
    value.length <= 320
  )
}
