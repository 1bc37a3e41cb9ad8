import { isParkedOrStuck } from '../../../core/decide/allowed-actions.ts'
import { UsageError } from '../../../core/model/errors.ts'
import { shortId } from '../../../core/model/id.ts'
import { unstuckCommand } from '../../../core/model/shell-command.ts'
import type { Target } from '../../../core/model/target.ts'
import { unpark as unparkTargets } from '../../../core/recovery/operator-actions.ts'
import {
  describeReplanned,
  describeNextStart,
  PARK_HINT,
} from '../../../presenters/target-actions.ts'
import { openContext } from '../../../app/open-context.ts'
import { findRun, findTargets } from '../../../presenters/find.ts'
import { describeUnknownGroups } from '../unknown-groups.ts'
import { formatTargetStatus } from '../../../presenters/format.ts'
import { defineCommand } from '../../../contracts/command.ts'
import { argument, option } from '../../../contracts/options.ts'

export const command = defineCommand({
  examples: ['unstuck unpark 91bc4f2a', 'unstuck unpark --run 4f2a91bc  # all of the run'],
  args: { targets: argument.rest('targets: their last 8 digits, or full ids') },
  options: {
    run: option.text('RUN', 'all parked and held targets of this run'),
    group: option.texts('GROUP', 'with --run: only those of these groups'),
    dryRun: option.flag('print what would be done, and change nothing'),
  },

  async run({ args, options, database, settings, output }) {
    if ((args.targets.length === 0) === (options.run === undefined)) {
      throw new UsageError('Give either targets, or --run RUN for all of a run.')
    }
    if (options.group.length > 0 && options.run === undefined)
      throw new UsageError('--group goes with --run.')
    const { dryRun } = options
    const store = await database.openExisting()
    const context = await openContext(store, settings)
    const named = await findTargets(store, args.targets)
    const whole = options.run === undefined ? null : await findRun(store, options.run)
    const remark = whole && (await describeUnknownGroups(store, [whole], options.group))
    if (remark) output.note(remark)
    const groups = options.group.length > 0 ? options.group : undefined
    const chosen = whole ? new Map([[whole.id, undefined]]) : byRun(named)
    const items: { run: string; targets: number; reopened: boolean }[] = []
    for (const [run, targets] of chosen) {
      items.push({ run, ...(await unparkTargets(context, run, { targets, groups, dryRun })) })
    }
    const total = items.reduce((sum, { targets }) => sum + targets, 0)
    return {
      data: { items, targets: total, dryRun },
      print: (writer) => {
        for (const { id, key, status } of named.filter((one) => !isParkedOrStuck(one)))
          writer.paragraph(
            `- ${shortId(id)} ${key}: stays as it is, ${formatTargetStatus(status).text}.`,
          )
        if (total === 0) return writer.paragraph('Nothing is parked or held. Nothing was changed.')
        for (const { run, ...back } of items.filter((one) => one.targets > 0))
          writer.paragraph(describeReplanned(run, back, dryRun))
        if (dryRun) return writer.paragraph('Nothing was changed.')
        writer.paragraph(
          describeNextStart(items.filter((one) => one.targets > 0).map(({ run }) => run)),
        )
        const undo = named.filter(isParkedOrStuck).map(({ id }) => shortId(id))
        writer.paragraph(undo.length > 0 ? `Undo: \`${unstuckCommand('park', undo)}\`` : PARK_HINT)
      },
    }
  },
})

function byRun(targets: readonly Target[]): Map<string, string[]> {
  const grouped = Map.groupBy(targets, ({ run }) => run)
  return new Map([...grouped].map(([run, all]) => [run, all.map(({ id }) => id)]))
}
