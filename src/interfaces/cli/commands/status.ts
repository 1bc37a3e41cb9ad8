import { openContext } from '../../../app/open-context.ts'
import { loadOverview, presentNoDatabase, presentOverview } from '../../../presenters/overview.ts'
import { defineCommand, reportState } from '../../../contracts/command.ts'

export const command = defineCommand({
  examples: [
    'unstuck status',
    'unstuck status --watch',
    'unstuck status --json || echo "look at it"  # exit code 3: something needs attention',
  ],
  watch: true,

  async run({ database, settings }) {
    const store = await database.openIfExists()
    return reportState(
      store
        ? presentOverview(await loadOverview(await openContext(store, settings)))
        : presentNoDatabase(await database.where(), Date.now()),
    )
  },
})
