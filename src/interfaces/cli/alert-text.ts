import type { alertsView } from '../../features/alerts/view.ts'
import type { Paper } from '../../lib/terminal/text-writer.ts'

/** Who is told of what, and how. */
export function printAlerts(
  paper: Paper,
  { url, alerts, channels }: ReturnType<typeof alertsView>,
): void {
  paper.heading('Alerts')
  paper.table(
    [{ head: 'WHEN' }, { head: 'OF', flex: true }, { head: 'TO' }, { head: 'AGAIN AFTER' }],
    alerts.map(({ when, moreThan, within, sources, to, repeat }) => [
      moreThan === undefined ? when : `${when}, more than ${moreThan} in ${within}`,
      sources.join(', ') || 'every source',
      to.join(', ') || 'dashboard',
      repeat,
    ]),
  )
  const { slack, email, webhook } = channels
  if (slack) paper.say(`slack: ${slack.host}`)
  if (email) paper.say(`email: ${email.host}, from ${email.from} to ${email.to.join(', ')}`)
  if (webhook) paper.say(`webhook: ${webhook.host}, ${webhook.signed ? 'signed' : 'not signed'}`)
  if (url !== null) paper.say(`Links lead to ${url}`)
}
