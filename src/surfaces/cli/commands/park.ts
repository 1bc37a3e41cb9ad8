import { UsageError } from '../../../model/errors.ts'
import { shortId } from '../../../model/id.ts'
import type { Target } from '../../../model/target.ts'
import { park as parkTargets } from '../../../runtime/steering.ts'
import { targetView } from '../../view.ts'
import { defineCommand } from '../command.ts'
import { doorOf } from '../door.ts'
import { findTarget } from '../find-run.ts'
import { argument, option } from '../option.ts'
import { plural } from '../paper/words.ts'

export const park = defineCommand({
  name: 'park',
  summary: 'Set targets aside, whoever has them, until somebody puts them back.',
  examples: [
    'unstuck park 91bc4f2a',
    'unstuck park 91bc4f2a 7701aa3e --because "the city has moved"',
  ],
  args: { targets: argument.rest('targets: their last 8 digits, or full ids') },
  options: {
    because: option.text('TEXT', 'why, for the audit trail'),
    dryRun: option.flag('only say what would be done'),
  },

  async run({ args, options, database, settings }) {
    if (args.targets.length === 0)
      throw new UsageError('Which targets? `unstuck show RUN` lists those in trouble.')
    const store = await database.openExisting()
    const found: Target[] = []
    for (const text of args.targets) found.push(await findTarget(store, text))
    const open = found.filter(({ status }) => status !== 'done' && status !== 'parked')
    const ids = open.map(({ id }) => id)
    if (!options.dryRun) await parkTargets(await doorOf(store, settings), ids, options.because)
    const now = await Promise.all(found.map(async ({ id }) => (await store.target(id))!))
    return {
      data: {
        items: now.map(targetView),
        parked: options.dryRun ? 0 : ids.length,
        dryRun: options.dryRun,
      },
      text: (paper) => {
        for (const { id, key, status } of found) {
          const parks = ids.includes(id)
          const word = !parks
            ? `stays as it is: ${status}`
            : options.dryRun
              ? 'would be parked'
              : 'is parked'
          paper.say(`${shortId(id)} ${key}: ${word}.`)
        }
        if (options.dryRun) paper.say('Nothing was changed.')
        else if (ids.length > 0) {
          paper.say(`Undo: \`unstuck unpark ${ids.map(shortId).join(' ')}\``)
        } else paper.say(`${plural(0, 'target')} changed.`)
      },
    }
  },
})
