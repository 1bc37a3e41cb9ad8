import { shortId } from '../../../model/id.ts'
import { isLive } from '../../../model/run.ts'
import { resume as resumeRun } from '../../../runtime/steering.ts'
import { runView } from '../../view.ts'
import { defineCommand } from '../command.ts'
import { doorOf } from '../door.ts'
import { findRun } from '../find-run.ts'
import { argument, option } from '../option.ts'
import { plural } from '../paper/words.ts'

export const resume = defineCommand({
  name: 'resume',
  summary: 'Open an ended run again: it goes on from its last saved pages when a worker starts.',
  examples: ['unstuck resume 4f2a91bc', 'unstuck resume 4f2a91bc --dry-run'],
  args: { run: argument.required('the run: its last 8 digits, or its full id') },
  options: { dryRun: option.flag('only say what would be done') },

  async run({ args, options, database, settings }) {
    const store = await database.openExisting()
    const { id, status: before } = await findRun(store, args.run)
    const resumed = await resumeRun(await doorOf(store, settings), id, options.dryRun)
    const { run, targets, reopened } = resumed
    return {
      data: { run: runView(run), targets, reopened, dryRun: options.dryRun },
      text: (paper) => {
        const short = shortId(id)
        const again =
          targets > 0
            ? `; ${plural(targets, 'target')} that had failed or were held are tried again`
            : ''
        if (options.dryRun) {
          paper.say(`Run ${short}, ${before}, would be opened again${again}. Nothing was changed.`)
        } else if (reopened || targets > 0) {
          paper.say(`Run ${short} of ${run.source} is ${run.status} again${again}.`)
          if (!isLive(before)) paper.say(`Undo: \`unstuck cancel ${short}\``)
        } else paper.say(`Run ${short} is ${run.status}: it needs nothing but a worker.`)
        if (!options.dryRun && run.status !== 'running') {
          paper.say(
            'It goes on when its worker starts: `unstuck work MODULE`, or `begin` in your code.',
          )
        }
      },
    }
  },
})
