import { UsageError } from '../../../core/model/errors.ts'
import { shortId } from '../../../core/model/id.ts'
import { unstuckCommand } from '../../../core/model/shell-command.ts'
import {
  park as parkTargets,
  describeEnded,
  allWereOpen,
} from '../../../presenters/target-actions.ts'
import { targetView } from '../../../presenters/view.ts'
import { openContext } from '../../../app/open-context.ts'
import { findTargets } from '../../../presenters/find.ts'
import { formatTargetStatus } from '../../../presenters/format.ts'
import { defineCommand } from '../../../contracts/command.ts'
import { argument, option } from '../../../contracts/options.ts'

export const command = defineCommand({
  examples: [
    'unstuck park 91bc4f2a',
    'unstuck park 91bc4f2a 7701aa3e --because "the city has moved"',
  ],
  args: { targets: argument.rest('targets: their last 8 digits, or full ids') },
  options: {
    because: option.text('TEXT', 'why, for the audit trail'),
    dryRun: option.flag('print what would be done, and change nothing'),
  },

  async run({ args, options, database, settings }) {
    if (args.targets.length === 0)
      throw new UsageError('Which targets? `unstuck show RUN` lists those in trouble.')
    const { dryRun } = options
    const store = await database.openExisting()
    const found = await findTargets(store, args.targets)
    const asked = { dryRun, because: options.because || undefined }
    const { parked, ended } = await parkTargets(await openContext(store, settings), found, asked)
    const now = await Promise.all(found.map(async ({ id }) => (await store.target(id))!))
    return {
      data: { items: now.map(targetView), parked: dryRun ? 0 : parked.length, dryRun },
      print: (writer) => {
        for (const { id, key, status } of found) {
          const word = !parked.some((one) => one.id === id)
            ? `stays as it is, ${formatTargetStatus(status).text}`
            : dryRun
              ? 'would be parked'
              : 'is parked'
          writer.paragraph(`- ${shortId(id)} ${key}: ${word}.`)
        }
        for (const run of ended) writer.paragraph(describeEnded(run))
        if (dryRun || parked.length === 0) writer.paragraph('Nothing was changed.')
        else {
          const word = allWereOpen(parked) ? 'Undo' : 'To put them back in line'
          const ids = parked.map(({ id }) => shortId(id))
          writer.paragraph(`${word}: \`${unstuckCommand('unpark', ids)}\``)
        }
      },
    }
  },
})
