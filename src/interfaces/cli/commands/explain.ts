import { openContext } from '../../../app/open-context.ts'
import { defineCommand, present } from '../../../contracts/command.ts'
import { argument } from '../../../contracts/options.ts'
import { presentExplanation } from '../../../presenters/explain.ts'
import { findRunOrTarget } from '../../../presenters/find.ts'

export const command = defineCommand({
  examples: ['unstuck explain 4f2a91bc', "unstuck explain 4f2a91bc --json | jq '.verdict'"],
  args: { what: argument.required('a run or a target: its last 8 digits, or its full id') },

  async run({ args, database, settings }) {
    const store = await database.openExisting()
    const context = await openContext(store, settings)
    const found = await findRunOrTarget(store, args.what)
    return present(await presentExplanation(context, await settings(), found))
  },
})
