import { loadRunReport, presentRun } from '../../../presenters/run.ts'
import { openContext } from '../../../app/open-context.ts'
import { findRun } from '../../../presenters/find.ts'
import { defineCommand, present } from '../../../contracts/command.ts'
import { argument } from '../../../contracts/options.ts'

export const command = defineCommand({
  examples: ['unstuck show 4f2a91bc', 'unstuck show 4f2a91bc --watch'],
  args: { run: argument.required('the run: its last 8 digits, or its full id') },
  watch: true,

  async run({ args, database, settings }) {
    const store = await database.openExisting()
    const run = await findRun(store, args.run)
    return present(presentRun(await loadRunReport(await openContext(store, settings), run)))
  },
})
