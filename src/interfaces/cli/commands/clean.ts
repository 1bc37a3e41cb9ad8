import { RISKY_ABANDON_MS } from '../../../app/config.ts'
import {
  defineCommand,
  present,
  reportState,
  type CliContext,
  type CommandResult,
} from '../../../contracts/command.ts'
import { argument, option } from '../../../contracts/options.ts'
import { UsageError } from '../../../core/model/errors.ts'
import type { Run } from '../../../core/model/run.ts'
import { formatDuration, humanizeDuration } from '../../../core/model/time.ts'
import { classifyRuns, cleanRuns, type ClassifiedRuns } from '../../../core/recovery/clean.ts'
import type { OperatorContext } from '../../../core/recovery/context.ts'
import type { Store } from '../../../core/store/store.ts'
import { dataFolder } from '../../../lib/files/data-folder.ts'
import {
  NOTHING_LIVE,
  presentCleaning,
  presentSummary,
  selectRuns,
  type CleanSelection,
} from '../../../presenters/cleaning.ts'
import { findRun } from '../../../presenters/find.ts'
import { confirm } from '../confirm.ts'
import { deleteRuns } from '../deletion.ts'

const args = { runs: argument.rest('these runs only; else every dead one') }
const options = {
  dryRun: option.flag('only show what would be done'),
  auto: option.flag('ask nothing: for cron'),
  age: option.duration('AGE', 'dead from this age on, instead of the age in the policy', undefined),
  delete: option.flag('delete instead of marking: what is dead and what was cleaned before'),
  withItems: option.flag('with --delete: the items that no other run has saved since go too'),
  confirm: option.text('WORDS', 'with --delete: the words that would have to be typed'),
}
type Clean = CliContext<typeof args, typeof options>

export const command = defineCommand({
  examples: [
    'unstuck clean --dry-run          # the table, and nothing else',
    'unstuck clean                    # the table, a question, then it marks the dead',
    'unstuck clean --auto --age 48h   # for cron: asks nothing',
    'unstuck clean --delete 4f2a91bc  # the only way to delete; wants the words typed',
  ],
  args,
  options,

  async run(context) {
    const { options, database, output, json } = context
    if (options.withItems && !options.delete)
      throw new UsageError('--with-items goes with --delete.')
    if (options.confirm !== undefined && !options.delete)
      throw new UsageError('--confirm goes with --delete; to ask nothing, add --auto.')
    const risky = riskyAgeWarning(options.age)
    if (risky) output.note(risky)
    const operator = await (context.args.runs.length > 0
      ? context.openContext()
      : context.openContextIfExists())
    if (!operator) return nothingToClean(options)
    const { classified, ended } = await selectForCleaning(
      context,
      operator.store,
      await classifyRuns(operator, options.age),
    )
    if (!options.delete) return markDead(context, operator, classified)
    const base = dataFolder(await database.address(), process.cwd())
    return deleteRuns(
      operator,
      { dead: classified.dead, ended },
      { ...options, base, output, json },
    )
  },
})

function nothingToClean({ delete: deletes, dryRun }: Clean['options']): CommandResult {
  const nothing = present(presentCleaning(NOTHING_LIVE, [], { dryRun }))
  return deletes ? { ...nothing, data: { runs: [], deleted: [], dryRun } } : nothing
}

/** A slow run may be older than an operator expects. */
function riskyAgeWarning(ageMs: number | undefined): string | null {
  if (ageMs === undefined || ageMs >= RISKY_ABANDON_MS) return null
  const [age, limit] = [ageMs, RISKY_ABANDON_MS].map(humanizeDuration)
  return `Warning: --age ${age} is below ${limit}: a slow run may look dead.`
}

const DELETE_MAX = 500

/** Only the named runs, if any are; with `--delete` else what was cleaned before too. */
async function selectForCleaning(
  { args, options, output }: Clean,
  store: Store,
  classified: ClassifiedRuns,
): Promise<CleanSelection> {
  if (args.runs.length === 0) {
    if (!options.delete) return { classified, ended: [] }
    const { items, next } = await store.runs({ statuses: ['abandoned'], limit: DELETE_MAX })
    if (next !== null) output.note(`Note: of those cleaned before, the newest ${DELETE_MAX} only`)
    // Rows of tables of your own are marked, never deleted.
    const canDelete = ({ traits }: Run): boolean => traits.actions.includes('delete')
    const dead = classified.dead.filter(({ run }) => canDelete(run))
    return { classified: { ...classified, dead }, ended: items.filter(canDelete) }
  }
  const named: Run[] = []
  for (const text of args.runs) named.push(await findRun(store, text))
  return selectRuns(classified, named, options.delete)
}

async function markDead(
  { args, options, output, json }: Clean,
  operator: OperatorContext,
  classified: ClassifiedRuns,
): Promise<CommandResult> {
  const { dryRun, auto } = options
  const age = options.age === undefined ? undefined : formatDuration(options.age)
  const request = { dryRun, age, runs: args.runs }
  const { dead } = classified
  if (dead.length === 0 || dryRun) return reportState(presentCleaning(classified, [], request))

  const { question } = presentCleaning(classified, [], { ...request, isDone: false })
  const summary = presentSummary(classified)
  const isShown = question && !auto && !json
  if (isShown) {
    const writer = output.makeWriter()
    writer.sections(summary.sections)
    await output.write(writer.toString())
  }
  const agreed = { yes: auto, alternative: 'add --auto, or --dry-run to only look' }
  // Without a question no run can be marked; each is reported with its reason.
  const isDone = !question || (await confirm(output, question, agreed))
  const cleaned = isDone ? await cleanRuns(operator, dead) : []
  const presented = presentCleaning(classified, cleaned, { ...request, isDone })
  const result = reportState(presented)
  if (!isShown) return result
  return {
    ...result,
    print: (writer) => {
      writer.blank()
      writer.sections(presented.sections.slice(summary.sections.length))
    },
  }
}
