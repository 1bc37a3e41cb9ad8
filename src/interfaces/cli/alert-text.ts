import type { alertsView } from '../../features/alerts/config.ts'
import type { TextWriter } from '../../lib/terminal/text-writer.ts'

/** Who is told of what, and how. */
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
