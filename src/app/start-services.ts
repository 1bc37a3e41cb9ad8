import type { BackgroundService, ServiceHost } from '../contracts/feature.ts'
import { FEATURES } from '../features/index.ts'

/** Starts the background services of all features. */
export async function startServices(
  host: ServiceHost,
): Promise<Pick<Required<BackgroundService>, 'finish' | 'stop'>> {
  const services = (
    await Promise.all(FEATURES.map(async (one) => one.services?.(host) ?? []))
  ).flat()
  for (const service of services) service.start()
  return {
    finish: async () =>
      void (await Promise.all(services.map(async (service) => service.finish?.()))),
    stop: async () => void (await Promise.all(services.map((service) => service.stop()))),
  }
}
