import { UsageError } from '../../../model/errors.ts'
import { shortId } from '../../../model/id.ts'
import { unpark as unparkTargets } from '../../../runtime/steering.ts'
import type { Store } from '../../../store/store.ts'
import { defineCommand } from '../command.ts'
import { doorOf } from '../door.ts'
import { findRun, findTarget } from '../find-run.ts'
import { argument, option } from '../option.ts'
import { plural } from '../paper/words.ts'

export const unpark = defineCommand({
  name: 'unpark',
  summary: 'Put parked and held targets back in line, from their last saved pages.',
  examples: ['unstuck unpark 91bc4f2a', 'unstuck unpark --run 4f2a91bc  # all of the run'],
  args: { targets: argument.rest('targets: their last 8 digits, or full ids') },
  options: {
    run: option.text('RUN', 'all parked and held targets of this run'),
    group: option.texts('GROUP', 'with --run: only those of these groups'),
    dryRun: option.flag('only say what would be done'),
  },

  async run({ args, options, database, settings }) {
    if ((args.targets.length === 0) === (options.run === undefined)) {
      throw new UsageError('Give either targets, or --run RUN for all of a run.')
    }
    const store = await database.openExisting()
    const door = await doorOf(store, settings)
    const { dryRun } = options
    const items: { run: string; targets: number; reopened: boolean }[] = []
    for (const [run, targets] of await chosen(store, args.targets, options.run)) {
      const groups = options.group.length > 0 ? options.group : undefined
      items.push({ run, ...(await unparkTargets(door, run, { targets, groups, dryRun })) })
    }
    const total = items.reduce((sum, { targets }) => sum + targets, 0)
    return {
      data: { items, targets: total, dryRun },
      text: (paper) => {
        if (total === 0) return paper.say('None of them is parked or held. Nothing was changed.')
        for (const { run, targets, reopened } of items) {
          const again = reopened ? `, which ${dryRun ? 'would be' : 'is'} open again` : ''
          paper.say(
            `${plural(targets, 'target')} ${dryRun ? 'would be ' : ''}back in line in run ${shortId(run)}${again}.`,
          )
        }
        paper.say(
          dryRun
            ? 'Nothing was changed.'
            : 'They go on when a worker starts. Undo: `unstuck park TARGET`',
        )
      },
    }
  },
})

/** By run: these targets, or undefined for all of them. */
async function chosen(
  store: Store,
  targets: readonly string[],
  run: string | undefined,
): Promise<Map<string, string[] | undefined>> {
  if (run !== undefined) return new Map([[(await findRun(store, run)).id, undefined]])
  const byRun = new Map<string, string[]>()
  for (const text of targets) {
    const target = await findTarget(store, text)
    byRun.set(target.run, [...(byRun.get(target.run) ?? []), target.id])
  }
  return byRun
}
