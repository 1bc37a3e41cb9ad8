import { createHmac } from 'node:crypto'
import { iso } from '../../core/model/time.ts'
import { destinationOf, type Channel } from './channel.ts'
import type { AlertSettings } from './config.ts'
import { sendMail, type EmailSettings, type MailText } from './mail.ts'
import { formatMessage, type AlertMessage } from './message.ts'
import { postJson, type WebhookSettings } from './post.ts'

/** Creates the channels that have an address. */
export function makeChannels({ slack, email, webhook }: AlertSettings['channels']): Channel[] {
  return [
    ...(slack ? [slackChannel(slack)] : []),
    ...(email ? [emailChannel(email)] : []),
    ...(webhook ? [webhookChannel(webhook)] : []),
  ]
}

/** Sends to an incoming webhook of Slack, or of a service that accepts the same messages. */
export function slackChannel(settings: WebhookSettings): Channel {
  return {
    name: 'slack',
    destination: destinationOf('slack', [settings.url]),
    send: (message, signal) =>
      postJson(settings, JSON.stringify(slackMessage(message)), {}, signal),
  }
}

export function emailChannel(settings: EmailSettings): Channel {
  const { smtp, from, to } = settings
  return {
    name: 'email',
    destination: destinationOf('email', [new URL(smtp).host, from, ...to]),
    send: (message, signal) => sendMail(settings, formatEmail(message), signal),
  }
}

/** Sends to a program of the user, signed if there is a secret. */
export function webhookChannel(
  settings: WebhookSettings & { readonly secret: string | null },
): Channel {
  const { url, secret } = settings
  const { origin, pathname } = new URL(url)
  return {
    name: 'webhook',
    destination: destinationOf('webhook', [origin, pathname]),
    send(message, signal) {
      const now = Date.now()
      const body = JSON.stringify(webhookPayload(message, now))
      const signature = secret !== null && { 'unstuck-signature': sign(secret, body, now) }
      return postJson(settings, body, { 'idempotency-key': message.key, ...signature }, signal)
    },
  }
}

/**
 * The evidence may contain text from web pages. It is placed where Slack reads no markup, and escaped as well, so that a
 * `<!channel>` notifies no one and no address in it is opened for a preview.
 */
export function slackMessage(message: AlertMessage): object {
  const { headline, because, command, link } = formatMessage(message)
  const icon = { raised: '🔴', repeated: '🔴', resolved: '🟢', test: '🔵' }[message.event]
  const title = `${icon} ${headline}`
  const lines = [title, because, ...(command === null ? [] : [command]), ...(link ? [link] : [])]
  return {
    text: lines.map(escapeMrkdwn).join('\n'),
    blocks: [
      section(title),
      section(because),
      ...(command === null ? [] : [section(`$ ${command}`)]),
      ...(link === null
        ? []
        : [
            {
              type: 'section',
              text: { type: 'mrkdwn', text: `<${escapeMrkdwn(link)}|Open the dashboard>` },
            },
          ]),
    ],
    unfurl_links: false,
    unfurl_media: false,
    link_names: false,
    parse: 'none',
  }
}

function section(text: string): object {
  return { type: 'section', text: { type: 'plain_text', text: escapeMrkdwn(text), emoji: false } }
}

/** Escapes the three characters that Slack asks for. */
function escapeMrkdwn(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

/** The document is described in docs/guides/alerts.md. */
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

/** Returns the mail as plain text and as HTML. */
export function formatEmail(message: AlertMessage): MailText {
  const { headline, because, command, link } = formatMessage(message)
  const parts = [headline, because, ...(command === null ? [] : [`$ ${command}`])]
  return {
    subject: `[unstuck] ${headline}`,
    text: [...parts, ...(link === null ? [] : [link]), ''].join('\n\n'),
    html: [
      `<p><strong>${escapeHtml(headline)}</strong></p>`,
      `<p>${escapeHtml(because)}</p>`,
      ...(command === null ? [] : [`<pre>${escapeHtml(command)}</pre>`]),
      ...(link === null ? [] : [`<p><a href="${escapeHtml(link)}">Open the dashboard</a></p>`]),
    ].join('\n'),
    // Prevents automatic replies.
    headers: { 'Auto-Submitted': 'auto-generated', 'X-Unstuck-Key': message.key },
  }
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => ENTITIES[char]!)
}
