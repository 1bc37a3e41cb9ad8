import { connect, type Socket } from 'node:net'
import { messageOf } from '../../core/model/errors.ts'
import { loadPeer } from '../../lib/optional-peer.ts'
import { destinationOf, DeliveryError, ATTEMPT_TIMEOUT_MS, type Channel } from './channel.ts'
import { formatMessage, type AlertMessage } from './message.ts'

export type EmailSettings = {
  /** `smtps://user:password@host:465`, or `smtp://…`, which turns to TLS where the server offers it. */
  readonly smtp: string
  readonly from: string
  readonly to: readonly string[]
}

/** By SMTP. The mail server is the operator's own, so it may be on a private network. */
export function emailChannel(settings: EmailSettings): Channel {
  return {
    name: 'email',
    destination: destinationOf('email', [
      new URL(settings.smtp).host,
      settings.from,
      ...settings.to,
    ]),
    send: (message, signal) => sendMail(settings, message, signal),
  }
}

async function sendMail(
  { smtp, from, to }: EmailSettings,
  message: AlertMessage,
  signal: AbortSignal,
): Promise<void> {
  const { createTransport } = await loadPeer(
    'nodemailer',
    'E-mail',
    () => import('nodemailer'),
  ).catch((error: unknown) => {
    throw new DeliveryError(messageOf(error))
  })
  const limit = AbortSignal.any([signal, AbortSignal.timeout(2 * ATTEMPT_TIMEOUT_MS)])
  const url = new URL(smtp)
  const transport = createTransport({
    url: smtp,
    connectionTimeout: ATTEMPT_TIMEOUT_MS,
    greetingTimeout: ATTEMPT_TIMEOUT_MS,
    socketTimeout: ATTEMPT_TIMEOUT_MS,
    dnsTimeout: ATTEMPT_TIMEOUT_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
    // A connection of our own, because one that nodemailer makes cannot be given up.
    getSocket: (
      _options: unknown,
      done: (error: Error | null, found?: { connection: Socket }) => void,
    ) => {
      const port = Number(url.port) || (url.protocol === 'smtps:' ? 465 : 587)
      const socket = connect({ host: url.hostname.replace(/^\[|\]$/g, ''), port })
      const giveUp = (): void => void socket.destroy(limit.reason as Error)
      if (limit.aborted) giveUp()
      limit.addEventListener('abort', giveUp, { once: true })
      socket.once('error', done).once('connect', () => {
        socket.off('error', done)
        done(null, { connection: socket })
      })
    },
  })
  try {
    await transport.sendMail({ from, to: [...to], ...formatEmail(message) })
  } catch (error) {
    throw toDeliveryError(error, limit, signal)
  } finally {
    transport.close()
  }
}

/** Returns the mail as plain text and as HTML. */
export function formatEmail(message: AlertMessage): {
  subject: string
  text: string
  html: string
  headers: Record<string, string>
} {
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
    // No holiday notice needs to answer this.
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

/** A server's response may repeat what it was sent, so only its code is shown. */
function toDeliveryError(error: unknown, limit: AbortSignal, stopped: AbortSignal): DeliveryError {
  if (stopped.aborted) return new DeliveryError('it was stopped before there was an answer')
  const { code, responseCode } = error as { code?: unknown; responseCode?: unknown }
  if (limit.aborted || code === 'ETIMEDOUT')
    return new DeliveryError('the mail server did not answer in time')
  if (code === 'EAUTH')
    return new DeliveryError('the mail server does not accept its user and password')
  if (typeof responseCode === 'number')
    return new DeliveryError(`the mail server answered ${responseCode}`)
  const kind = typeof code === 'string' && /^[A-Z]{3,20}$/.test(code) ? ` (${code})` : ''
  return new DeliveryError(`the mail server could not be reached${kind}`)
}
