// Settings of Unstuck. All there are, explained: node_modules/unstuck/docs/configuration.md
import { defineConfig } from 'unstuck'

export default defineConfig({
  // Unstuck's own books: who did what to which row, and how it is undone. Your tables stay as they are.
  db: 'sqlite:.unstuck/unstuck.db',

  // With a preset, rows that nobody is known to work on are failed when they have not moved for a while: 5 minutes
  // in 'development', 15 in 'staging', 30 in 'production'. Without one they are shown, and left alone.
  // preset: 'production',

  adopted: {
    runs: {
      table: 'runs',
      db: 'sqlite:app.db',
      columns: {
        id: 'id',
        source: 'portal_name',
        status: 'status',
        startedAt: 'started_at',
        finishedAt: 'completed_at',
        extracted: 'extracted_total_tenders',
        error: 'error',
      },
      statuses: {
        active: 'running',
        succeeded: 'completed',
        failed: 'failed',
        // cancelled: 'cancelled', // to end a row by hand: `unstuck cancel`
      },
      // If your runs leave checkpoint files: one with something in it can be gone on from.
      checkpoint: (row) => `checkpoints/${row['id']}.json`,
    },
  },
})
