import type { BackgroundService, ServiceHost, StoreHost } from '../../contracts/feature.ts'
import type { Store } from '../../core/store/store.ts'
import { withAdoptedTables } from './adopted-store.ts'
import { AdoptedRecovery } from './background-recovery.ts'
import { ADOPTED_SECTION } from './config.ts'

/** Adds the rows of the config's tables to a store. */
export function wrapStore(store: Store, { settings, address, log }: StoreHost): Promise<Store> {
  const { policyOf } = settings
  return withAdoptedTables(store, settings.section(ADOPTED_SECTION), { address, log, policyOf })
}

/** Recovers rows while a server runs. */
export async function recoveryServices(host: ServiceHost): Promise<BackgroundService[]> {
  if (!host.recovers) return []
  const policies = host.settings.section(ADOPTED_SECTION).map(({ policy }) => policy)
  return [new AdoptedRecovery({ ...host, policies, policyOf: host.settings.policyOf })]
}
