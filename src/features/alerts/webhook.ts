import { createHmac } from 'node:crypto'
import { iso } from '../../core/model/time.ts'
import { destinationOf, type Channel } from './channel.ts'
import { formatMessage, type AlertMessage } from './message.ts'
import { postJson, type WebhookSettings } from './post.ts'

/** To a program of one's own. docs/guides/alerts.md describes the document. */
export function webhookChannel(
  settings: WebhookSettings & { readonly secret: string | null },
): Channel {
  const { origin, pathname } = new URL(settings.url)
  return {
    name: 'webhook',
    destination: destinationOf('webhook', [origin, pathname]),
    send: (message, signal) => {
      const now = Date.now()
      const body = JSON.stringify(webhookPayload(message, now))
      const headers = {
        'idempotency-key': message.key,
        ...(settings.secret !== null && { 'unstuck-signature': sign(settings.secret, body, now) }),
      }
      return postJson(settings, body, headers, signal)
    },
  }
}

function webhookPayload(message: AlertMessage, now: number): object {
  const { event, key, alert, link } = message
  const { headline, because, command } = formatMessage(message)
  const { cause, rule, source, run, since } = alert
  return {
    version: 1,
    event,
    key,
    headline,
    alert: { cause, rule, source, run, because, command, since: iso(since) },
    causes: message.causes ?? [cause],
    link,
    sentAt: iso(now),
  }
}

/** Signs the time and the body, so that an intercepted message cannot be sent again later. */
function sign(secret: string, body: string, now: number): string {
  const t = Math.floor(now / 1_000)
  return `t=${t},v1=${createHmac('sha256', secret).update(`${t}.${body}`).digest('hex')}`
}
