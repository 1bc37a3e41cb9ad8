import { openContext } from '../../../app/open-context.ts'
import { assess } from '../../../core/recovery/assess.ts'
import { presentWorkers } from '../../../presenters/workers.ts'
import { defineCommand, presentList } from '../../../contracts/command.ts'
import { option } from '../../../contracts/options.ts'

export const command = defineCommand({
  examples: [
    'unstuck workers --watch',
    'unstuck workers --older 1h  # only those not heard of for an hour',
  ],
  options: {
    older: option.duration('AGE', 'only workers whose last beat is older', undefined),
  },
  watch: true,

  async run({ options, database, settings }) {
    const store = await database.openIfExists()
    const assessment = store && (await assess(await openContext(store, settings)))
    return presentList(presentWorkers(assessment ?? null, options.older))
  },
})
