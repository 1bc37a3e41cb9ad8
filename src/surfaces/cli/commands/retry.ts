import { shortId } from '../../../model/id.ts'
import { isLive } from '../../../model/run.ts'
import { refuseRetry, retry as retryRun } from '../../../runtime/steering.ts'
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
    const door = await doorOf(store, settings)
    if (options.dryRun) await refuseRetry(door, old)
    const next = options.dryRun ? null : await retryRun(door, old.id)
    return {
      data: { retryOf: old.id, run: next && runView(next), dryRun: options.dryRun },
      text: (paper) => {
        const id = shortId(old.id)
        if (!next) {
          paper.say(`A new run of ${old.source} would be queued, to follow ${id} from nothing.`)
          if (isLive(old.status)) paper.say(`Run ${id}, ${old.status}, would be failed.`)
          return paper.say('Nothing was changed.')
        }
        paper.say(
          `Run ${shortId(next.id)} of ${next.source} is queued; it follows ${id} from nothing.`,
        )
        paper.say('It begins when a worker starts. What was saved stays saved.')
        // A run that had ended before is as it was; one that was live was failed for the new one.
        paper.say(
          isLive(old.status)
            ? `Undo: \`unstuck revert ${id}\``
            : `Undo: \`unstuck cancel ${shortId(next.id)}\``,
        )
      },
    }
  },
})
