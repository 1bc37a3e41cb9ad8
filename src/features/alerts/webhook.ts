import { createHmac } from 'node:crypto'
import { iso } from '../../core/model/time.ts'
import { destinationOf, type Channel } from './channel.ts'
import { wordingOf, type AlertMessage } from './message.ts'
import { post, type Hook } from './post.ts'

/** To a program of one's own. docs/alerts.md describes the document. */
export function webhookChannel(hook: Hook & { readonly secret: string | null }): Channel {
  const { origin, pathname } = new URL(hook.url)
  return {
    name: 'webhook',
    destination: destinationOf('webhook', [origin, pathname]),
    send: (message, signal) => {
      const now = Date.now()
      const body = JSON.stringify(webhookDocument(message, now))
      const headers = {
        'idempotency-key': message.key,
        ...(hook.secret !== null && { 'unstuck-signature': signature(hook.secret, body, now) }),
      }
      return post(hook, body, headers, signal)
    },
  }
}

function webhookDocument(message: AlertMessage, now: number): object {
  const { event, key, alert, link } = message
  const { headline, because, command } = wordingOf(message)
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

/** Of the time and the body, so that a message that somebody caught cannot be sent again later. */
function signature(secret: string, body: string, now: number): string {
  const t = Math.floor(now / 1_000)
  return `t=${t},v1=${createHmac('sha256', secret).update(`${t}.${body}`).digest('hex')}`
}
