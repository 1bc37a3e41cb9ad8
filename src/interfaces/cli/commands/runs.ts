import { RUN_STATUSES } from '../../../core/model/run.ts'
import { openContext } from '../../../app/open-context.ts'
import { listRuns, presentRuns } from '../../../presenters/runs.ts'
import { defineCommand, presentList } from '../../../contracts/command.ts'
import { option } from '../../../contracts/options.ts'

export const command = defineCommand({
  examples: [
    'unstuck runs --source directory',
    'unstuck runs --status failed --limit 5',
    "unstuck runs --json | jq -r '.items[].id'",
  ],
  options: {
    source: option.text('SOURCE', 'only runs of this source'),
    status: option.choice(RUN_STATUSES, 'only runs in this status', undefined),
    limit: option.count('N', 'how many', 20, { max: 500 }),
    after: option.text('CURSOR', 'continue after this one: `next` of the last page'),
  },
  watch: true,

  async run({ options, database, settings }) {
    const store = await database.openIfExists()
    if (!store) return presentList(presentRuns(null))
    const { status, ...page } = options
    const filter = { ...page, statuses: status && [status] }
    return presentList(presentRuns(await listRuns(await openContext(store, settings), filter)))
  },
})
