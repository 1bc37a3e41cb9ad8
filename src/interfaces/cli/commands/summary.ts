import { EXIT } from '../../../core/model/exit-codes.ts'
import { classifyRuns } from '../../../core/recovery/clean.ts'
import { openContext } from '../../../app/open-context.ts'
import { summaryView } from '../../../presenters/cleaning.ts'
import { NOTHING_LIVE, printSummary } from '../summary-text.ts'
import { defineCommand } from '../../../contracts/command.ts'
import { option } from '../../../contracts/options.ts'

export const command = defineCommand({
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
    const store = await database.openIfExists()
    const classified = store
      ? await classifyRuns(await openContext(store, settings), options.age)
      : NOTHING_LIVE
    return {
      data: summaryView(classified),
      print: (writer) => printSummary(writer, classified),
      exitCode: classified.severity !== 'ok' ? EXIT.needsAttention : EXIT.done,
    }
  },
})
