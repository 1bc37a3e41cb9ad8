import { explainEither, explanationView } from '../../../presenters/explain.ts'
import { defineCommand } from '../command.ts'
import { doorOf } from '../../../app/open-context.ts'
import { printExplanation } from '../explain-text.ts'
import { findEither } from '../../../presenters/find.ts'
import { argument } from '../option.ts'

export const explain = defineCommand({
  name: 'explain',
  summary:
    'Why a run or a target is what it is: evidence, policy, verdict, and what would change it.',
  examples: ['unstuck explain 4f2a91bc', "unstuck explain 4f2a91bc --json | jq '.verdict'"],
  args: { what: argument.required('a run or a target: its last 8 digits, or its full id') },

  async run({ args, database, settings }) {
    const store = await database.openExisting()
    const door = await doorOf(store, settings)
    const found = await findEither(store, args.what)
    const config = await settings()
    const answer = await explainEither(door, config, found)
    const { explained, policy } = answer
    return {
      data: explanationView(answer),
      text: (paper) => printExplanation(paper, explained, { policy, preset: config.preset }),
    }
  },
})
