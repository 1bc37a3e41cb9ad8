import { isAdoptedId } from '../../../features/adopted/ids.ts'
import { UsageError } from '../../../core/model/errors.ts'
import type { Run } from '../../../core/model/run.ts'
import { resetFailed as resetFailedTargets } from '../../../core/recovery/operator-actions.ts'
import type { Store } from '../../../core/store/store.ts'
import { sayBackInLine, sayWhenTheyGoOn, TO_SET_ASIDE } from '../../../presenters/target-actions.ts'
import { defineCommand } from '../command.ts'
import { isAgreed } from '../confirm.ts'
import { doorOf } from '../../../app/open-context.ts'
import { findRun, findTargets } from '../../../presenters/find.ts'
import { unknownGroups } from '../known-groups.ts'
import { argument, option } from '../option.ts'
import { printFirst } from '../../../lib/terminal/long-lists.ts'
import { plural } from '../../../presenters/format.ts'

type Reset = { run: string; source: string; targets: number; reopened: boolean }

export const resetFailed = defineCommand({
  name: 'reset-failed',
  summary: 'Put failed targets back in line, from their last saved pages.',
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
    dryRun: option.flag('only say what would be done'),
    yes: option.flag('do not ask', '-y'),
  },

  async run({ args, options, database, settings, output }) {
    if (args.run !== undefined && options.source !== undefined)
      throw new UsageError('Give either a run or --source SOURCE.')
    if (options.target.length > 0 && args.run === undefined)
      throw new UsageError('--target goes with a run: unstuck reset-failed RUN --target TARGET.')
    const store = await database.openExisting()
    const door = await doorOf(store, settings)
    const runs =
      args.run === undefined
        ? await newestFailing(store, options.source)
        : [await findRun(store, args.run)]
    const remark = await unknownGroups(store, runs, options.group)
    if (remark && runs.length > 0) output.note(remark)
    const named = await findTargets(store, options.target)
    const chosen = {
      targets: named.length > 0 ? named.map(({ id }) => id) : undefined,
      maxAttempts: options.maxAttempts,
      groups: options.group.length > 0 ? options.group : undefined,
    }
    const planned: Reset[] = []
    for (const run of runs) {
      const counted = await resetFailedTargets(door, run.id, { ...chosen, dryRun: true })
      if (counted.targets > 0) planned.push({ run: run.id, source: run.source, ...counted })
    }
    const total = sum(planned)
    const question = `Put ${plural(total, 'failed target')} of ${plural(planned.length, 'run')} back in line?`
    const yes = { yes: options.yes, elsewise: 'add --yes, or --dry-run to only look' }
    const agreed = total > 0 && !options.dryRun && (await isAgreed(output, question, yes))
    const done: Reset[] = []
    for (const { run, source } of agreed ? planned : []) {
      done.push({ run, source, ...(await resetFailedTargets(door, run, chosen)) })
    }
    const items = agreed ? done : planned
    return {
      data: { items, targets: sum(items), dryRun: options.dryRun || (total > 0 && !agreed) },
      text: (paper) => {
        if (total === 0)
          return paper.say(
            'No failed target fits. `unstuck status` says what is left for a person.',
          )
        const print = ({ run, source, ...back }: Reset): void =>
          paper.say(`- ${source}: ${sayBackInLine(run, back, !agreed)}`)
        printFirst(
          paper,
          items,
          print,
          `${plural(sum(items), 'target')} in all, \`--json\` has each run`,
        )
        if (!agreed) paper.say('Nothing was changed.')
        else {
          const ids = items.map(({ run }) => run)
          const aside = ids.every(isAdoptedId) ? '' : ` ${TO_SET_ASIDE}`
          paper.say(`${sayWhenTheyGoOn(ids)}${aside}`)
        }
      },
    }
  },
})

function sum(items: readonly Reset[]): number {
  return items.reduce((total, { targets }) => total + targets, 0)
}

const RUNS_MAX = 500

/** The newest run of each source, where it has failed targets: older ones are history. */
async function newestFailing(store: Store, source: string | undefined): Promise<Run[]> {
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
