import { unstuckCommand } from '../core/model/shell-command.ts'
import { needsAttention, plural } from './format.ts'
import { presentOverview, type Overview } from './overview.ts'
import { alertView } from './view.ts'

/** Returns the open alerts with the severity of `status`: alerts are opened only while a process checks their rules. */
export function presentAlerts(overview: Overview) {
  const { alerts, attention, severity } = overview
  const count = attention.length
  const open =
    alerts.length === 0
      ? 'No alert is open.'
      : `${plural(alerts.length, 'alert')} ${alerts.length === 1 ? 'is' : 'are'} open.`
  const rest = count > 0 ? needsAttention(count) : presentOverview(overview).summary
  return {
    severity,
    summary: severity === 'ok' ? open : `${open} ${rest} See \`${unstuckCommand('status')}\`.`,
    attention: count,
    open: alerts.map(alertView),
  }
}
