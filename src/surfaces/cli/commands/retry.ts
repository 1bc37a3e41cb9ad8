import { shortId } from '../../../model/id.ts'
import { isLive } from '../../../model/run.ts'
import { retry as retryRun } from '../../../runtime/steering.ts'
import { runView } from '../../view.ts'
import { defineCommand } from '../command.ts'
import { doorOf } from '../door.ts'
import { findRun } from '../find-run.ts'
import { argument, option } from '../option.ts'

export const retry = defineCommand({
  name: 'retry',
  summary: 'Queue a new run that follows this one from nothing. What was saved stays saved.',
  examples: ['unstuck retry 4f2a91bc'],
  args: { run: argument.required('the run: its last 8 digits, or its full id') },
  options: { dryRun: option.flag('only say what would be done') },

  async run({ args, options, database, settings }) {
    const store = await database.openExisting()
    const old = await findRun(store, args.run)
    const next = options.dryRun ? null : await retryRun(await doorOf(store, settings), old.id)
    return {
      data: { retryOf: old.id, run: next && runView(next), dryRun: options.dryRun },
      text: (paper) => {
        const ends = isLive(old.status) ? `, and run ${shortId(old.id)} would be failed` : ''
        if (!next)
          return paper.say(
            `A new run of ${old.source} would be queued${ends}. Nothing was changed.`,
          )
        paper.say(
          `Run ${shortId(next.id)} of ${next.source} is queued; it follows ${shortId(old.id)} from nothing.`,
        )
        paper.say(
          `To go on from what was saved instead: \`unstuck cancel ${shortId(next.id)}\`, then \`unstuck resume ${shortId(old.id)}\`.`,
        )
      },
    }
  },
})
