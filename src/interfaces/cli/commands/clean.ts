import { RISKY_ABANDON_MS } from '../../../app/config.ts'
import {
  defineCommand,
  present,
  reportState,
  type CliContext,
  type CommandResult,
  type Output,
} from '../../../contracts/command.ts'
import { argument, option, SHARED_OPTIONS } from '../../../contracts/options.ts'
import { EXIT } from '../../../core/model/exit-codes.ts'
import { UsageError } from '../../../core/model/errors.ts'
import type { Run } from '../../../core/model/run.ts'
import { formatDuration, humanizeDuration } from '../../../core/model/time.ts'
import type { AssessedRun } from '../../../core/recovery/assess.ts'
import { classifyRuns, cleanRuns, type ClassifiedRuns } from '../../../core/recovery/clean.ts'
import type { OperatorContext } from '../../../core/recovery/context.ts'
import type { Store } from '../../../core/store/store.ts'
import { dataFolder } from '../../../lib/files/data-folder.ts'
import type { Section } from '../../../lib/text/sentence.ts'
import {
  NOTHING_LIVE,
  presentCleaning,
  presentLiveRuns,
  selectRuns,
  type CleanSelection,
} from '../../../presenters/cleaning.ts'
import {
  applyDeletion,
  deletionPlan,
  deletionSentences,
  planDeletion,
  type DeletionResult,
} from '../../../presenters/deletion.ts'
import { findRunToChange } from '../../../presenters/find.ts'
import { plural } from '../../../presenters/format.ts'
import { confirm, confirmByTyping } from '../confirm.ts'

const args = { runs: argument.rest('only these runs; default: all dead runs') }
const options = {
  dryRun: SHARED_OPTIONS.dryRun,
  yes: SHARED_OPTIONS.yes,
  age: SHARED_OPTIONS.age,
  delete: option.flag('delete dead runs and those cleaned before, instead of marking'),
  withItems: option.flag('with --delete: also the items that no other run has saved since'),
  confirm: option.text('WORDS', 'with --delete: the phrase that is asked for, given in advance'),
}
type Clean = CliContext<typeof args, typeof options>

export const command = defineCommand({
  examples: [
    'unstuck clean --dry-run          # only print the plan',
    'unstuck clean                    # print the plan, ask, then mark the dead runs',
    'unstuck clean --yes --age 48h    # for cron: does not ask',
    'unstuck clean --delete 4f2a91bc  # the only way to delete; asks for a phrase',
  ],
  args,
  options,

  async run(context) {
    const { options, output } = context
    if (options.withItems && !options.delete)
      throw new UsageError('--with-items goes with --delete.')
    if (options.confirm !== undefined && !options.delete)
      throw new UsageError('--confirm goes with --delete; to ask nothing, add --yes.')
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
    return deleteRuns(context, operator, { dead: classified.dead, ended })
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
    // Rows of tables of your own are deleted only by name.
    const canDelete = ({ traits }: Run): boolean => traits.origin === null
    const dead = classified.dead.filter(({ run }) => canDelete(run))
    return { classified: { ...classified, dead }, ended: items.filter(canDelete) }
  }
  const named: Run[] = []
  for (const text of args.runs) named.push(await findRunToChange(store, text, 'clean'))
  return selectRuns(classified, named, options.delete)
}

async function markDead(
  { args, options, output, json }: Clean,
  operator: OperatorContext,
  classified: ClassifiedRuns,
): Promise<CommandResult> {
  const { dryRun, yes } = options
  const age = options.age === undefined ? undefined : formatDuration(options.age)
  const { dead } = classified
  const runs = args.runs.length > 0 ? dead.map(({ run }) => run.id) : []
  const request = { dryRun, age, runs }
  if (dead.length === 0 || dryRun) return reportState(presentCleaning(classified, [], request))

  const { question } = presentCleaning(classified, [], { ...request, isDone: false })
  const summary = presentLiveRuns(classified)
  const isShown = question && !yes && !json
  if (isShown) await writeSections(output, summary.sections)
  const agreed = { yes, alternative: 'add --yes, or --dry-run for a preview' }
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

const NOTHING_DELETED: DeletionResult = { deleted: [], left: [], failures: [] }

/** Lists what would be deleted, asks for the phrase, and deletes. Runs that changed meanwhile are kept. */
async function deleteRuns(
  { options, database, output, json }: Clean,
  operator: OperatorContext,
  { dead, ended }: { dead: readonly AssessedRun[]; ended: readonly Run[] },
): Promise<CommandResult> {
  const { dryRun, withItems } = options
  const base = dataFolder(await database.address(), process.cwd())
  const runs = [...dead.map(({ run }) => run), ...ended]
  const planned = await planDeletion(operator.store, runs, { base, withItems })
  const plan: Section = { heading: null, sentences: deletionPlan(planned, withItems) }
  const asks = planned.length > 0 && !dryRun
  if (asks && !json) await writeSections(output, [plan])
  const words = `delete ${plural(planned.length, 'run')}`
  const isConfirmed = asks && (await confirmByTyping(output, words, options.confirm))
  const result = isConfirmed
    ? await applyDeletion(operator, planned, { dead, withItems })
    : NOTHING_DELETED
  for (const failure of result.failures) output.note(failure)
  const isAllGone = result.left.length === 0 && result.failures.length === 0
  return {
    data: {
      runs: planned.map(
        ({ run: { id: run, source, status, traits }, targets, items, folders }) => ({
          run,
          source,
          origin: traits.origin,
          status,
          targets,
          items,
          folders,
        }),
      ),
      deleted: result.deleted,
      dryRun,
    },
    print: (writer) => {
      if (!asks) writer.sections([plan])
      if (asks && !isConfirmed) writer.paragraph('The phrase does not match.')
      if (planned.length === 0) return
      for (const sentence of deletionSentences(result)) writer.paragraph(...sentence)
    },
    exitCode: asks && !isConfirmed ? EXIT.failed : isAllGone ? EXIT.done : EXIT.needsAttention,
  }
}

async function writeSections(output: Output, sections: readonly Section[]): Promise<void> {
  const writer = output.makeWriter()
  writer.sections(sections)
  await output.write(writer.toString())
}
