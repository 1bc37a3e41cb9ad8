import { shortId } from '../../../model/id.ts'
import { isLive } from '../../../model/run.ts'
import { revert as revertRun } from '../../../runtime/steering.ts'
import { runView } from '../../view.ts'
import { defineCommand } from '../command.ts'
import { doorOf } from '../door.ts'
import { findRun } from '../find-run.ts'
import { argument, option } from '../option.ts'
import { plural } from '../paper/words.ts'

/** What people call it. */
const DEEDS: Readonly<Record<string, string>> = {
  abandon: 'The cleaning',
  cancel: 'The cancelling',
  fail: 'The failing',
  park: 'The parking',
  hold: 'The holding',
}

export const revert = defineCommand({
  name: 'revert',
  summary: 'Take back the last clean, cancel, fail or recovery of a run.',
  examples: ['unstuck revert 4f2a91bc --dry-run', 'unstuck revert 4f2a91bc'],
  args: { run: argument.required('the run: its last 8 digits, or its full id') },
  options: { dryRun: option.flag('only say what would be done') },

  async run({ args, options, database, settings }) {
    const store = await database.openExisting()
    const { id, status: before } = await findRun(store, args.run)
    const reverted = await revertRun(await doorOf(store, settings), id, options.dryRun)
    const { run, undid, targets } = reverted
    return {
      data: { run: runView(run), undid, targets, dryRun: options.dryRun },
      text: (paper) => {
        const short = shortId(id)
        const what = `${DEEDS[undid] ?? `The ${undid}`} of run ${short} of ${run.source}`
        const back = targets > 0 ? `, with ${plural(targets, 'target')} back in line` : ''
        if (options.dryRun) {
          paper.say(`${what}, which is ${before}, would be taken back${back}.`)
          return paper.say('Nothing was changed.')
        }
        paper.say(`${what} is taken back: it is ${run.status}${back}.`)
        paper.say('Nothing automatic ends it until a worker has had it again.')
        if (!isLive(before)) paper.say(`To end it again: \`unstuck cancel ${short}\``)
      },
    }
  },
})
