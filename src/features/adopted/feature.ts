import type { Feature } from '../../contracts/feature.ts'

/** Tables of the user's own whose rows are runs. */
export const adopted: Feature = {
  name: 'adopted',
  commands: [
    {
      name: 'adopt',
      summary: 'Find runs tables in your own database, assess their rows, and write the config.',
      group: 'Work:',
      before: 'work',
      load: () => import('./wizard/command.ts'),
    },
  ],
  config: async () => (await import('./config.ts')).ADOPTED_SECTION,
  wrapStore: async (store, host) => (await import('./store-wrapper.ts')).wrapStore(store, host),
  services: async (host) => (await import('./background-recovery.ts')).recoveryServices(host),
  checks: async (host) => (await import('./check.ts')).checkAdoptedTables(host),
}
