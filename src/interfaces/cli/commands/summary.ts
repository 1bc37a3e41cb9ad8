import { openContext } from '../../../app/open-context.ts'
import { defineCommand, reportState } from '../../../contracts/command.ts'
import { option } from '../../../contracts/options.ts'
import { classifyRuns } from '../../../core/recovery/clean.ts'
import { NOTHING_LIVE, presentSummary } from '../../../presenters/cleaning.ts'

export const command = defineCommand({
  examples: ['unstuck summary', "unstuck summary --json | jq '.dead[].id'"],
  options: {
    age: option.duration(
      'AGE',
      'dead from this age on, instead of the age in the policy',
      undefined,
    ),
  },
  watch: true,

  async run({ options, database, settings }) {
    const store = await database.openIfExists()
    const classified = store
      ? await classifyRuns(await openContext(store, settings), options.age)
      : NOTHING_LIVE
    return reportState(presentSummary(classified))
  },
})
