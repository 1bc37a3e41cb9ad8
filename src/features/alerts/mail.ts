import { connect, type Socket } from 'node:net'
import { messageOf } from '../../core/model/errors.ts'
import { loadPeer } from '../../lib/optional-peer.ts'
import { ATTEMPT_TIMEOUT_MS, DeliveryError, stoppedBeforeAnswer, unreachable } from './channel.ts'

export type EmailSettings = {
  /** `smtps://user:password@host:465`, or `smtp://…`, which turns to TLS where the server offers it. */
  readonly smtp: string
  readonly from: string
  readonly to: readonly string[]
}

export type MailText = {
  readonly subject: string
  readonly text: string
  readonly html: string
  readonly headers: Record<string, string>
}

/** Sends a mail by SMTP. The mail server is the operator's own, so it may be on a private network. */
export async function sendMail(
  { smtp, from, to }: EmailSettings,
  mail: MailText,
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
    await transport.sendMail({ from, to: [...to], ...mail })
  } catch (error) {
    throw toDeliveryError(error, limit, signal)
  } finally {
    transport.close()
  }
}

/** A server's response may repeat what it was sent, so only its code is shown. */
function toDeliveryError(error: unknown, limit: AbortSignal, stopped: AbortSignal): DeliveryError {
  if (stopped.aborted) return stoppedBeforeAnswer()
  const { code, responseCode } = error as { code?: unknown; responseCode?: unknown }
  if (limit.aborted || code === 'ETIMEDOUT')
    return new DeliveryError('the mail server did not answer in time')
  if (code === 'EAUTH')
    return new DeliveryError('the mail server does not accept its user and password')
  if (typeof responseCode === 'number')
    return new DeliveryError(`the mail server answered ${responseCode}`)
  return unreachable('the mail server', { code })
}
