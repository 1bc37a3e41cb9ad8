import type { WorkerId } from '../../core/model/id.ts'
import type { AlertService } from '../../features/alerts/service.ts'
import { isWorkerProcess } from '../../core/worker/processes.ts'
import type { Context } from './command.ts'

type Beside = Pick<AlertService, 'finish' | 'stop'>

const NOBODY: Beside = { finish: async () => {}, stop: async () => {} }

/**
 * Tells people what the config's rules ask for while a command works. Where it has none, nothing is even loaded. It looks
 * now and then, so where nobody else has opened the store one connection is enough.
 */
export async function alertsBeside(
  { settings, database }: Pick<Context, 'settings' | 'database'>,
  log: (text: string) => void,
  worker: () => WorkerId | null,
): Promise<Beside> {
  // Its parent looks, for all of them.
  if (isWorkerProcess()) return NOBODY
  const config = await settings()
  if (!config.alerts.areConfigured) return NOBODY
  const { makeAlerts } = await import('../../features/alerts/make-service.ts')
  const alerts = makeAlerts(() => database.openAll({ connections: 1 }), config, log, worker)
  alerts.start()
  return alerts
}
