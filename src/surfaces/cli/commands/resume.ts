import { shortId } from '../../../model/id.ts'
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
        const what = `Run ${short} of ${run.source}`
        const are = options.dryRun ? 'would be' : targets === 1 ? 'is' : 'are'
        if (reopened) {
          paper.say(
            options.dryRun
              ? `${what}, which is ${before}, would be opened again.`
              : `${what} is ${run.status} again.`,
          )
        } else paper.say(`${what} is ${run.status} already: there is nothing to open again.`)
        if (targets > 0) {
          paper.say(`${plural(targets, 'failed or held target')} ${are} put back in line.`)
        }
        if (options.dryRun) return paper.say('Nothing was changed.')
        if (run.status !== 'running') {
          paper.say(
            'It goes on when its worker starts: `unstuck work MODULE`, or `begin` in your code.',
          )
        }
        if (reopened) paper.say(`To end it again: \`unstuck cancel ${short}\``)
      },
    }
  },
})
