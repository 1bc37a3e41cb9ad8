import { UsageError } from '../../../core/model/errors.ts'
import type { Run } from '../../../core/model/run.ts'
import type { Store } from '../../../core/store/store.ts'
import { resetFailed } from '../../../presenters/target-actions.ts'
import { confirm } from '../confirm.ts'
import { findRunToChange, findTargets } from '../../../presenters/find.ts'
import { describeUnknownGroups } from '../unknown-groups.ts'
import { plural } from '../../../presenters/format.ts'
import { defineCommand, presentAction } from '../../../contracts/command.ts'
import { argument, option, SHARED_OPTIONS } from '../../../contracts/options.ts'

export const command = defineCommand({
  examples: [
    'unstuck reset-failed --dry-run',
    'unstuck reset-failed --max-attempts 3 --group CA TX  # only those with at most three attempts',
    'unstuck reset-failed 4f2a91bc --yes',
  ],
  args: {
    run: argument.optional(
      'the run, or a source: its live run; default: the newest of each source',
    ),
  },
  options: {
    source: SHARED_OPTIONS.source,
    target: option.texts(
      'TARGET',
      'with a run: only these targets, by their last 8 digits or full ids',
    ),
    group: SHARED_OPTIONS.groups,
    maxAttempts: option.count('N', 'only targets with at most N attempts', undefined),
    dryRun: SHARED_OPTIONS.dryRun,
    yes: SHARED_OPTIONS.yes,
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
        : [await findRunToChange(store, args.run, 'reset-failed')]
    const warning = await describeUnknownGroups(store, runs, options.group)
    if (warning && runs.length > 0) output.note(warning)
    const named = await findTargets(store, options.target)
    const chosen = {
      targets: named.length > 0 ? named.map(({ id }) => id) : undefined,
      maxAttempts: options.maxAttempts,
      groups: options.group.length > 0 ? options.group : undefined,
    }
    const planned = await resetFailed(context, runs, { ...chosen, dryRun: true })
    const matching = planned.items.filter(({ targets }) => targets > 0)
    const total = planned.targets
    const question = `Put ${plural(total, 'failed target')} of ${plural(matching.length, 'run')} back in the queue? This cannot be reverted.`
    const yes = { yes: options.yes, alternative: 'add --yes, or --dry-run for a preview' }
    const agreed = total > 0 && !options.dryRun && (await confirm(output, question, yes))
    const changed = runs.filter(({ id }) => matching.some(({ run }) => run === id))
    const result = agreed
      ? await resetFailed(context, changed, { ...chosen, dryRun: false })
      : planned
    const items = agreed ? result.items : matching
    const dryRun = options.dryRun || (total > 0 && !agreed)
    return presentAction({ items, targets: result.targets, dryRun }, result)
  },
})

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
