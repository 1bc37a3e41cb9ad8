import { defineConfig } from 'unstuck'

/** The app's own table, as it is: nothing is added to it, and only the columns that are named here are written. */
export default defineConfig({
  preset: 'development', // a running row without a known owner is failed after 5 minutes
  adopted: {
    qualifications: {
      db: process.env['APP_DB'] ?? 'sqlite:app.db',
      table: 'qualification_runs',
      columns: {
        id: 'id',
        status: 'status',
        startedAt: 'createdAt',
        finishedAt: 'completedAt',
        error: 'errorMessage',
        done: 'completed',
        total: 'total',
      },
      statuses: { active: ['PROCESSING', 'PENDING'], succeeded: 'COMPLETED', failed: 'FAILED' },
    },
  },
})
