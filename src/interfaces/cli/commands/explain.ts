import { explainRunOrTarget, explanationView } from '../../../presenters/explain.ts'
import { openContext } from '../../../app/open-context.ts'
import { printExplanation } from '../explain-text.ts'
import { findRunOrTarget } from '../../../presenters/find.ts'
import { defineCommand } from '../../../contracts/command.ts'
import { argument } from '../../../contracts/options.ts'

export const command = defineCommand({
  examples: ['unstuck explain 4f2a91bc', "unstuck explain 4f2a91bc --json | jq '.verdict'"],
  args: { what: argument.required('a run or a target: its last 8 digits, or its full id') },

  async run({ args, database, settings }) {
    const store = await database.openExisting()
    const context = await openContext(store, settings)
    const found = await findRunOrTarget(store, args.what)
    const config = await settings()
    const answer = await explainRunOrTarget(context, config, found)
    const { explanation, policy } = answer
    return {
      data: explanationView(answer),
      print: (writer) => printExplanation(writer, explanation, { policy, preset: config.preset }),
    }
  },
})
