import type { ChannelName } from './rule.ts'
import { formatDuration } from '../../core/model/time.ts'
import { readAlerts, type AlertSettings } from './config.ts'
import type { ConfigSection, Secret, Settings } from '../../contracts/settings.ts'
import type { ServiceHost } from '../../contracts/feature.ts'
import { isWorkerProcess } from '../../lib/process/this-process.ts'
import { passwordsIn } from '../../core/model/redact.ts'
import { isLoopback } from '../../lib/http/host-check.ts'
import { ok, warning, type Finding } from '../../contracts/finding.ts'
import type { TextWriter } from '../../lib/terminal/text-writer.ts'

/** `alerts` and `channels` of the config. */
export const ALERTS_SECTION: ConfigSection<AlertSettings> = {
  keys: ['alerts', 'channels'],
  read: ({ alerts, channels }, { mistakes, warnings }) =>
    readAlerts(alerts, channels, mistakes, warnings),
  secrets: alertSecrets,
  view: alertsView,
  print: (alerts, settings, writer) => {
    if (alerts.areConfigured) printAlerts(writer, alertsView(alerts, settings))
  },
}

/** Returns true for processes that send alerts: of workers only with rules in the config, and of their processes the parent. */
export function sendsAlerts({ process, settings }: ServiceHost): boolean {
  if (process !== 'worker') return true
  return settings.section(ALERTS_SECTION).areConfigured && !isWorkerProcess()
}

/** Returns the addresses and secrets of the channels. */
export function alertSecrets({ channels }: AlertSettings): Secret[] {
  const { slack, email, webhook } = channels
  const secret = webhook?.secret ?? null
  return [
    ...(slack ? [{ setting: 'channels.slack.url', value: slack.url }] : []),
    ...(email
      ? [
          {
            setting: 'channels.email.smtp',
            value: email.smtp,
            mayBeWritten: !passwordsIn(email.smtp).some(Boolean),
          },
        ]
      : []),
    ...(webhook
      ? [{ setting: 'channels.webhook.url', value: webhook.url, mayBeWritten: true }]
      : []),
    ...(secret === null ? [] : [{ setting: 'channels.webhook.secret', value: secret }]),
  ]
}

/** Returns the settings without secrets: of an address the host, of a secret whether it is set. */
export function alertsView(alerts: AlertSettings, { url }: Pick<Settings, 'url'>) {
  const { slack, email, webhook } = alerts.channels
  const webhookView = (hook: typeof slack) =>
    hook && {
      host: hostOf(hook.url),
      allowPrivate: hook.allowPrivate,
      allowHttp: hook.allowHttp,
    }
  return {
    url,
    alerts: alerts.rules.map((rule) => ({
      when: rule.when,
      ...(rule.when === 'orphans' && {
        moreThan: rule.moreThan,
        within: formatDuration(rule.withinMs),
      }),
      sources: rule.sources,
      to: rule.to,
      repeat: rule.repeatMs === null ? 'never' : formatDuration(rule.repeatMs),
      resolved: rule.notifyResolved,
    })),
    channels: {
      slack: webhookView(slack),
      email: email && { host: hostOf(email.smtp), from: email.from, to: email.to },
      webhook: webhook && { ...webhookView(webhook)!, signed: webhook.secret !== null },
    } satisfies Record<ChannelName, object | null>,
  }
}

function hostOf(address: string): string {
  return URL.parse(address)?.host ?? ''
}

/** Prints the rules and the channels. */
export function printAlerts(
  writer: TextWriter,
  { url, alerts, channels }: ReturnType<typeof alertsView>,
): void {
  writer.heading('Alerts')
  writer.table(
    [{ header: 'WHEN' }, { header: 'OF', flex: true }, { header: 'TO' }, { header: 'AGAIN AFTER' }],
    alerts.map(({ when, moreThan, within, sources, to, repeat }) => [
      moreThan === undefined ? when : `${when}, more than ${moreThan} in ${within}`,
      sources.join(', ') || 'every source',
      to.join(', ') || 'dashboard',
      repeat,
    ]),
  )
  const { slack, email, webhook } = channels
  if (slack) writer.paragraph(`slack: ${slack.host}`)
  if (email) writer.paragraph(`email: ${email.host}, from ${email.from} to ${email.to.join(', ')}`)
  if (webhook)
    writer.paragraph(`webhook: ${webhook.host}, ${webhook.signed ? 'signed' : 'not signed'}`)
  if (url !== null) writer.paragraph(`Links lead to ${url}`)
}

/** Checks that messages go over TLS and are signed. */
export function checkChannels(settings: Settings): Finding[] {
  const { slack, email, webhook } = settings.section(ALERTS_SECTION).channels
  const plain = [
    ...(slack?.url.startsWith('http:') ? ['channels.slack.url is http://'] : []),
    ...(webhook?.url.startsWith('http:') ? ['channels.webhook.url is http://'] : []),
    ...(email && isPlainMail(email.smtp)
      ? ['channels.email.smtp is smtp://, which sends plain text if the server has no TLS']
      : []),
    ...(webhook && webhook.secret === null
      ? ['channels.webhook has no secret: its receiver cannot verify the sender']
      : []),
  ]
  if (plain.length === 0) return [ok('channels', 'Alerts use TLS.')]
  return [
    warning('channels', 'Alerts can be read or forged on their way.', {
      details: plain,
      why: 'They name sources, runs and errors, and operators act on them.',
      fix: 'Use https:// and smtps://, and set channels.webhook.secret.',
    }),
  ]
}

function isPlainMail(smtp: string): boolean {
  const url = URL.parse(smtp)
  return url?.protocol === 'smtp:' && !isLoopback(url.hostname)
}
