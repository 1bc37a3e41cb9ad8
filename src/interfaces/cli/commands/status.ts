import { EXIT } from '../../../core/model/exit-codes.ts'
import { openContext } from '../../../app/open-context.ts'
import { printFirstSteps, printStatus } from '../status-text.ts'
import { getStatus } from '../../../presenters/status.ts'
import { defineCommand } from '../../../contracts/command.ts'

export const command = defineCommand({
  examples: [
    'unstuck status',
    'unstuck status --watch',
    'unstuck status --json || echo "look at it"  # exit code 3: something needs attention',
  ],
  watch: true,

  async run({ database, settings }) {
    const store = await database.openIfExists()
    if (!store) {
      const where = await database.where()
      const data = {
        severity: 'ok',
        summary: 'Nothing has run yet.',
        runs: [],
        workers: {},
        attention: [],
        commands: [],
        latest: null,
      }
      return { data, print: (writer) => printFirstSteps(writer, where) }
    }
    const report = await getStatus(await openContext(store, settings))
    return {
      data: report.data,
      print: (writer) => printStatus(writer, report),
      exitCode: report.data.severity !== 'ok' ? EXIT.needsAttention : EXIT.done,
    }
  },
})
