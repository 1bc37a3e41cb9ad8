import { EXIT } from '../../../core/model/errors.ts'
import { sumUp } from '../../../core/recovery/clean.ts'
import { defineCommand } from '../command.ts'
import { doorOf } from '../../../app/open-context.ts'
import { option } from '../option.ts'
import { summaryView } from '../../../presenters/cleaning.ts'
import { NOTHING_LIVE, printSummary } from '../summary-text.ts'

export const summary = defineCommand({
  name: 'summary',
  summary: 'Live runs by what can be said about them: active, resumable, dead.',
  examples: ['unstuck summary', "unstuck summary --json | jq '.dead[].id'"],
  options: {
    age: option.duration(
      'AGE',
      'dead from this age on, instead of what the policy says',
      undefined,
    ),
  },
  watch: true,

  async run({ options, database, settings }) {
    const store = await database.openIfAny()
    const summed = store ? await sumUp(await doorOf(store, settings), options.age) : NOTHING_LIVE
    const now = store ? await store.now() : Date.now()
    return {
      data: summaryView(summed),
      text: (paper) => printSummary(paper, summed, now),
      exitCode: summed.dead.length > 0 ? EXIT.leftForAPerson : EXIT.done,
    }
  },
})
