import type { WorkerId } from '../../core/model/id.ts'
import type { AlertService } from '../../features/alerts/service.ts'
import { isWorkerProcess } from '../../core/worker/processes.ts'
import type { CliContext } from '../../contracts/command.ts'

type BackgroundAlerts = Pick<AlertService, 'finish' | 'stop'>

const NO_ALERTS: BackgroundAlerts = { finish: async () => {}, stop: async () => {} }

/**
 * Tells people what the config's rules ask for while a command works. Where it has none, nothing is even loaded. It looks
 * now and then, so where nobody else has opened the store one connection is enough.
 */
export async function startBackgroundAlerts(
  { settings, database }: Pick<CliContext, 'settings' | 'database'>,
  log: (text: string) => void,
  worker: () => WorkerId | null,
): Promise<BackgroundAlerts> {
  // Its parent looks, for all of them.
  if (isWorkerProcess()) return NO_ALERTS
  const config = await settings()
  if (!config.alerts.areConfigured) return NO_ALERTS
  const { makeAlertService } = await import('../../features/alerts/service.ts')
  const alerts = makeAlertService(
    () => database.openWithAdopted({ connections: 1 }),
    config,
    log,
    worker,
  )
  alerts.start()
  return alerts
}
