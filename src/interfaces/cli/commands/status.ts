import { EXIT } from '../../../core/model/exit-codes.ts'
import { defineCommand } from '../command.ts'
import { printFirstSteps, printStatus } from '../status-text.ts'
import { getStatus } from '../../../presenters/status.ts'

export const status = defineCommand({
  examples: [
    'unstuck status',
    'unstuck status --watch',
    'unstuck status --json || echo "look at it"  # exit code 3: something is left for a person',
  ],
  watch: true,

  async run({ database }) {
    const store = await database.openIfExists()
    if (!store) {
      const where = await database.where()
      const data = {
        summary: 'Nothing has run yet.',
        runs: [],
        workers: {},
        attention: [],
        commands: [],
        latest: null,
      }
      return { data, print: (writer) => printFirstSteps(writer, where) }
    }
    const survey = await getStatus(store)
    return {
      data: survey.data,
      print: (writer) => printStatus(writer, survey),
      exitCode: survey.data.attention.length > 0 ? EXIT.needsAttention : EXIT.done,
    }
  },
})
