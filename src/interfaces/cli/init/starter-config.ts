import { EXAMPLE_SOURCE } from './starter-crawl.ts'

/** All of it is optional; what is commented out says how it is without. */
export const STARTER_CONFIG = `// Settings of Unstuck. Everything works without them: what is commented out shows the defaults.
// All there are, explained: node_modules/unstuck/docs/configuration.md
import { defineConfig } from 'unstuck'

export default defineConfig({
  // Where runs, targets and items are kept. A relative path counts from the folder of this file. For workers on many
  // machines it is 'postgres://…', best taken from the environment: process.env['DATABASE_URL'].
  db: 'sqlite:.unstuck/unstuck.db',

  // How the runs of each source are kept alive and judged.
  policies: {
    ${EXAMPLE_SOURCE}: {
      // heartbeat: '1s', // how often a worker says that it lives
      // lease: '15s', // silence after which its targets are taken over
      // retries: 3, // errors of a page in a row that are tried again
      // backoff: '1s', // the wait before the first retry; it doubles each time
      // backoffMax: '1m',
      // maxCrashes: 3, // workers a target may take down before it is set aside
      // maxSilence: '15m', // a worker without a saved page for longer counts as stalled
    },
  },
})
`
