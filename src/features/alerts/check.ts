import type { Settings } from '../../contracts/settings.ts'
import { isLoopback } from '../../lib/http/host-check.ts'
import { ok, warning, type Finding } from '../../presenters/finding.ts'
import { ALERTS_SECTION } from './section.ts'

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
      why: 'They name sources, runs and errors, and people act on them.',
      fix: 'Use https:// and smtps://, and set channels.webhook.secret.',
    }),
  ]
}

function isPlainMail(smtp: string): boolean {
  const url = URL.parse(smtp)
  return url?.protocol === 'smtp:' && !isLoopback(url.hostname)
}
