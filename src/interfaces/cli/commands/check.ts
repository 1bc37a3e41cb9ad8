import { openContext } from '../../../app/open-context.ts'
import { defineCommand, present } from '../../../contracts/command.ts'
import { argument, option } from '../../../contracts/options.ts'
import { EXIT } from '../../../core/model/exit-codes.ts'
import { checkSource } from '../../../core/model/source.ts'
import { adviseStart } from '../../../core/recovery/advise-start.ts'
import { NOTHING_RAN, presentCheck } from '../../../presenters/check.ts'

export const command = defineCommand({
  examples: [
    'unstuck check portal-a',
    'unstuck check portal-a && python scrape.py  # exit code 5: a worker has it',
    'unstuck check portal-a --age 48h --json',
  ],
  args: { source: argument.required('the source that is to start') },
  options: {
    age: option.duration(
      'AGE',
      'dead from this age on, instead of the age in the policy',
      undefined,
    ),
  },

  async run({ args, options, database, settings }) {
    const { source } = args
    checkSource(source)
    const store = await database.openIfExists()
    const advice = store
      ? await adviseStart(await openContext(store, settings), source, options.age)
      : NOTHING_RAN
    const now = store ? await store.now() : Date.now()
    const exitCode = advice.action === 'wait' ? EXIT.alreadyRunning : EXIT.done
    return present(presentCheck(source, advice, now), exitCode)
  },
})
