import { connect, type Socket } from 'node:net'
import { destinationOf, NotTaken, TRY_MS, type Channel } from './channel.ts'
import { wordingOf, type AlertMessage } from './message.ts'

export type Mailbox = {
  /** `smtps://user:password@host:465`, or `smtp://…`, which turns to TLS where the server offers it. */
  readonly smtp: string
  readonly from: string
  readonly to: readonly string[]
}

/** By SMTP. The mail server is the operator's own, so it may be on a private network. */
export function emailChannel(mailbox: Mailbox): Channel {
  return {
    name: 'email',
    destination: destinationOf('email', [new URL(mailbox.smtp).host, mailbox.from, ...mailbox.to]),
    send: (message, signal) => sendMail(mailbox, message, signal),
  }
}

async function sendMail(
  { smtp, from, to }: Mailbox,
  message: AlertMessage,
  signal: AbortSignal,
): Promise<void> {
  const { createTransport } = await import('nodemailer')
  const limit = AbortSignal.any([signal, AbortSignal.timeout(2 * TRY_MS)])
  const url = new URL(smtp)
  const transport = createTransport({
    url: smtp,
    connectionTimeout: TRY_MS,
    greetingTimeout: TRY_MS,
    socketTimeout: TRY_MS,
    dnsTimeout: TRY_MS,
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
    await transport.sendMail({ from, to: [...to], ...mailOf(message) })
  } catch (error) {
    throw told(error, limit, signal)
  } finally {
    transport.close()
  }
}

/** What stands in the mail: plain text, and the same as HTML for those who read that. */
export function mailOf(message: AlertMessage): {
  subject: string
  text: string
  html: string
  headers: Record<string, string>
} {
  const { headline, because, command, link } = wordingOf(message)
  const parts = [headline, because, ...(command === null ? [] : [`$ ${command}`])]
  return {
    subject: `[unstuck] ${headline}`,
    text: [...parts, ...(link === null ? [] : [link]), ''].join('\n\n'),
    html: [
      `<p><strong>${escaped(headline)}</strong></p>`,
      `<p>${escaped(because)}</p>`,
      ...(command === null ? [] : [`<pre>${escaped(command)}</pre>`]),
      ...(link === null ? [] : [`<p><a href="${escaped(link)}">Open the dashboard</a></p>`]),
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

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (char) => ENTITIES[char]!)
}

/** A server's answer may repeat what it was sent: only its code is told. */
function told(error: unknown, limit: AbortSignal, stopped: AbortSignal): NotTaken {
  if (stopped.aborted) return new NotTaken('it was stopped before there was an answer')
  const { code, responseCode } = error as { code?: unknown; responseCode?: unknown }
  if (limit.aborted || code === 'ETIMEDOUT')
    return new NotTaken('the mail server did not answer in time')
  if (code === 'EAUTH') return new NotTaken('the mail server does not accept its user and password')
  if (typeof responseCode === 'number')
    return new NotTaken(`the mail server answered ${responseCode}`)
  const kind = typeof code === 'string' && /^[A-Z]{3,20}$/.test(code) ? ` (${code})` : ''
  return new NotTaken(`the mail server could not be reached${kind}`)
}
