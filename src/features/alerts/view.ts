import type { ChannelName } from '../../core/model/alert-rule.ts'
import { formatDuration } from '../../core/model/time.ts'
import type { AlertSettings } from './config.ts'
import type { Settings } from '../../app/config.ts'

/** All of the config's alerts that nobody may see. */
export function alertSecrets({ channels }: AlertSettings): string[] {
  const { slack, email, webhook } = channels
  const secrets = [slack?.url, email?.smtp, webhook?.url, webhook?.secret ?? undefined]
  return secrets.filter((one) => one !== undefined)
}

/** As people and programs may see it: of an address the host, of a secret that it is there. */
export function alertsView({ url, alerts }: Pick<Settings, 'url' | 'alerts'>) {
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
