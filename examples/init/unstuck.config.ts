// Settings of Unstuck. All are optional: what is commented out shows the defaults.
// All settings: node_modules/unstuck/docs/reference/configuration.md
import { defineConfig } from 'unstuck'

export default defineConfig({
  // Where runs, targets and items are kept. A relative path counts from the folder of this file. For workers on many
  // machines it is 'postgres://…', best taken from the environment: process.env['DATABASE_URL'].
  db: 'sqlite:.unstuck/unstuck.db',

  // How the runs of each source are kept alive and recovered.
  policies: {
    example: {
      // heartbeat: '1s', // how often a worker sends a heartbeat
      // lease: '15s', // silence after which its targets are recovered
      // retries: 3, // errors of a page in a row that are tried again
      // backoff: '1s', // the wait before the first retry; it doubles each time
      // backoffMax: '1m',
      // maxCrashes: 3, // workers that may crash on a target before it is parked
      // maxSilence: '15m', // a worker without a saved page for longer counts as stalled
    },
  },
})
