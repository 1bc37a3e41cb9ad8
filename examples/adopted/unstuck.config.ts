// Settings of Unstuck. All of them are explained in node_modules/unstuck/docs/reference/configuration.md
import { defineConfig } from 'unstuck'

export default defineConfig({
  // Unstuck's own database: what was done to which row, and how to undo it. Your tables keep their schema.
  db: 'sqlite:.unstuck/unstuck.db',

  // With a preset, rows without a known owner are failed when they have not changed for a while: 5 minutes
  // in 'development', 15 in 'staging', 30 in 'production'. Without one they are reported and not changed.
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
        // cancelled: 'cancelled', // enables `unstuck cancel`
      },
      // If your runs write checkpoint files: a run whose file is not empty can be continued.
      checkpoint: (row) => `checkpoints/${row['id']}.json`,
      // delete: true, // lets `unstuck clean --delete ID` delete ended rows
    },
  },
})
