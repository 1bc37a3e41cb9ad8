import { UsageError } from '../../../core/model/errors.ts'
import type { Run } from '../../../core/model/run.ts'
import { resetFailed as resetFailedTargets } from '../../../core/recovery/operator-actions.ts'
import type { Store } from '../../../core/store/store.ts'
import {
  describeReplanned,
  describeNextStart,
  parkHint,
} from '../../../presenters/target-actions.ts'
import { confirm } from '../confirm.ts'
import { findRun, findTargets } from '../../../presenters/find.ts'
import { describeUnknownGroups } from '../unknown-groups.ts'
import { printFirst } from '../../../lib/terminal/text-writer.ts'
import { plural } from '../../../presenters/format.ts'
import { defineCommand } from '../../../contracts/command.ts'
import { argument, option } from '../../../contracts/options.ts'

type ResetResult = { run: string; source: string; targets: number; reopened: boolean }

export const command = defineCommand({
  examples: [
    'unstuck reset-failed --dry-run',
    'unstuck reset-failed --max-attempts 3 --group CA TX  # only those tried at most three times',
    'unstuck reset-failed 4f2a91bc --yes',
  ],
  args: { run: argument.optional('the run; without it the newest run of each source') },
  options: {
    source: option.text('SOURCE', 'only the newest run of this source'),
    target: option.texts('TARGET', 'of a run: only these, by their last 8 digits or full ids'),
    group: option.texts('GROUP', 'only targets of these groups'),
    maxAttempts: option.count('N', 'only targets that were tried at most so often', undefined),
    dryRun: option.flag('print what would be done, and change nothing'),
    yes: option.flag('do not ask', '-y'),
  },

  async run({ args, options, openContext, output }) {
    if (args.run !== undefined && options.source !== undefined)
      throw new UsageError('Give either a run or --source SOURCE.')
    if (options.target.length > 0 && args.run === undefined)
      throw new UsageError('--target goes with a run: unstuck reset-failed RUN --target TARGET.')
    const context = await openContext()
    const { store } = context
    const runs =
      args.run === undefined
        ? await newestRunsWithFailures(store, options.source)
        : [await findRun(store, args.run)]
    const warning = await describeUnknownGroups(store, runs, options.group)
    if (warning && runs.length > 0) output.note(warning)
    const named = await findTargets(store, options.target)
    const chosen = {
      targets: named.length > 0 ? named.map(({ id }) => id) : undefined,
      maxAttempts: options.maxAttempts,
      groups: options.group.length > 0 ? options.group : undefined,
    }
    const planned: ResetResult[] = []
    for (const run of runs) {
      const counted = await resetFailedTargets(context, run.id, { ...chosen, dryRun: true })
      if (counted.targets > 0) planned.push({ run: run.id, source: run.source, ...counted })
    }
    const total = totalTargets(planned)
    const question = `Put ${plural(total, 'failed target')} of ${plural(planned.length, 'run')} back in line?`
    const yes = { yes: options.yes, alternative: 'add --yes, or --dry-run to only look' }
    const agreed = total > 0 && !options.dryRun && (await confirm(output, question, yes))
    const done: ResetResult[] = []
    for (const { run, source } of agreed ? planned : []) {
      done.push({ run, source, ...(await resetFailedTargets(context, run, chosen)) })
    }
    const items = agreed ? done : planned
    return {
      data: {
        items,
        targets: totalTargets(items),
        dryRun: options.dryRun || (total > 0 && !agreed),
      },
      print: (writer) => {
        if (total === 0)
          return writer.paragraph(
            'No failed target fits. `unstuck status` lists what needs attention.',
          )
        const print = ({ run, source, ...back }: ResetResult): void =>
          writer.paragraph(`- ${source}: ${describeReplanned(run, back, !agreed)}`)
        printFirst(
          writer,
          items,
          print,
          `${plural(totalTargets(items), 'target')} in all, \`--json\` has each run`,
        )
        if (!agreed) writer.paragraph('Nothing was changed.')
        else {
          const changed = runs.filter(({ id }) => items.some(({ run }) => run === id))
          writer.paragraph([describeNextStart(changed), ...parkHint(changed)].join(' '))
        }
      },
    }
  },
})

function totalTargets(items: readonly ResetResult[]): number {
  return items.reduce((total, { targets }) => total + targets, 0)
}

const RUNS_MAX = 500

/** The newest run of each source, where it has failed targets: older ones are history. */
async function newestRunsWithFailures(store: Store, source: string | undefined): Promise<Run[]> {
  const found: Run[] = []
  for (const { run } of await store.liveRuns()) found.push(run)
  const live = new Set(found.map((run) => run.source))
  const failed = (await store.runs({ source, statuses: ['failed'], limit: RUNS_MAX })).items
  for (const run of failed) {
    if (live.has(run.source)) continue
    live.add(run.source)
    const [newest] = (await store.runs({ source: run.source, limit: 1 })).items
    if (newest?.id === run.id) found.push(run)
  }
  return found.filter(
    (run) => run.counts.targets.failed > 0 && (source === undefined || run.source === source),
  )
}
