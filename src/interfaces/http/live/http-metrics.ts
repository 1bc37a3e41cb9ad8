import type { Registry } from 'prom-client'
import { loadPromClient } from '../../../features/metrics/prometheus.ts'
import type { ErrorLog } from '../error-log.ts'

/** Counters of this process since its start; available without the database. */
export const HTTP_METRICS = [
  {
    name: 'unstuck_http_logins_total',
    help: 'Logins to the dashboard, by result. Since this process started.',
    label: 'result',
    values: ({ logins }: ErrorLog): Record<string, number> => logins,
  },
  {
    name: 'unstuck_http_refused_total',
    help: 'Calls refused for who sent them, from where or how often, by code. Since this process started.',
    label: 'code',
    values: ({ errors }: ErrorLog): Record<string, number> => errors,
  },
] as const

export async function registerHttpMetrics(registry: Registry, errorLog: ErrorLog): Promise<void> {
  const client = await loadPromClient()
  for (const { name, help, label, values } of HTTP_METRICS) {
    const counter = new client.Counter({
      name,
      help,
      labelNames: [label],
      registers: [],
      collect() {
        this.reset()
        for (const [key, value] of Object.entries(values(errorLog)))
          this.inc({ [label]: key.toLowerCase() }, value)
      },
    })
    registry.registerMetric(counter)
  }
}
