import { Refused } from '../../../model/errors.ts'
import { shortId } from '../../../model/id.ts'
import { isLive } from '../../../model/run.ts'
import { cancel as cancelRun } from '../../../runtime/steering.ts'
import { runView } from '../../view.ts'
import { defineCommand } from '../command.ts'
import { doorOf } from '../door.ts'
import { findRun } from '../find-run.ts'
import { argument, option } from '../option.ts'
import { plural } from '../paper/words.ts'

export const cancel = defineCommand({
  name: 'cancel',
  summary: 'End a live run. Whoever works on it stops at the end of the page in hand.',
  examples: ['unstuck cancel 4f2a91bc', 'unstuck cancel 4f2a91bc --because "wrong city list"'],
  args: { run: argument.required('the run: its last 8 digits, or its full id') },
  options: {
    because: option.text('TEXT', 'why, for the audit trail'),
    dryRun: option.flag('only say what would be done'),
  },

  async run({ args, options, database, settings }) {
    const store = await database.openExisting()
    const run = await findRun(store, args.run)
    const id = shortId(run.id)
    if (!isLive(run.status)) throw new Refused(`Run ${id} has already ended: it is ${run.status}.`)
    const held = run.counts.targets.in_progress
    const ended = options.dryRun
      ? run
      : await cancelRun(await doorOf(store, settings), run.id, options.because || undefined)
    return {
      data: { run: runView(ended), dryRun: options.dryRun },
      text: (paper) => {
        const what = `Run ${id} of ${run.source}`
        paper.say(
          options.dryRun
            ? `${what}, ${run.status}, would be cancelled; its data would be kept.`
            : `${what} is cancelled; its data is kept.`,
        )
        if (held > 0)
          paper.say(`${plural(held, 'target')} in hand: work on it stops after the page.`)
        paper.say(options.dryRun ? 'Nothing was changed.' : `Undo: \`unstuck revert ${id}\``)
      },
    }
  },
})
