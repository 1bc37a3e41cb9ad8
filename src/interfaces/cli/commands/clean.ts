import { UsageError } from '../../../core/model/errors.ts'
import { EXIT } from '../../../core/model/exit-codes.ts'
import { shortId } from '../../../core/model/id.ts'
import type { Run } from '../../../core/model/run.ts'
import { blockedReason, type Verdict } from '../../../core/model/verdict.ts'
import { cleanRuns, classifyRuns, type ClassifiedRuns } from '../../../core/recovery/clean.ts'
import { dataFolder } from '../../../lib/files/data-folder.ts'
import type { AssessedRun } from '../../../core/recovery/assess.ts'
import type { OperatorContext } from '../../../core/recovery/context.ts'
import type { Store } from '../../../core/store/store.ts'
import { RISKY_ABANDON_MS } from '../../../app/config.ts'
import { cleaningView, selectRuns, type CleanSelection } from '../../../presenters/cleaning.ts'
import { confirm } from '../confirm.ts'
import { deleteRuns } from '../deletion.ts'
import { openContext } from '../../../app/open-context.ts'
import { findRun } from '../../../presenters/find.ts'
import { LINES_MAX } from '../../../lib/text/sentence.ts'
import type { TextWriter } from '../../../lib/terminal/text-writer.ts'
import { plural, formatSource } from '../../../presenters/format.ts'
import { NOTHING_LIVE, printSummary, riskyAgeWarning } from '../summary-text.ts'
import { defineCommand, type CliContext, type CommandResult } from '../../../contracts/command.ts'
import { argument, option } from '../../../contracts/options.ts'

const args = { runs: argument.rest('these runs only; else every dead one') }
const options = {
  dryRun: option.flag('only show what would be done'),
  auto: option.flag('ask nothing: for cron'),
  age: option.duration('AGE', 'dead from this age on, instead of what the policy says', undefined),
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
    const { options, database, settings, output, json } = context
    if (options.withItems && !options.delete)
      throw new UsageError('--with-items goes with --delete.')
    if (options.confirm !== undefined && !options.delete)
      throw new UsageError('--confirm goes with --delete; to ask nothing, add --auto.')
    const risky = riskyAgeWarning(options.age, RISKY_ABANDON_MS)
    if (risky) output.note(risky)
    const store = await (context.args.runs.length > 0
      ? database.openExisting()
      : database.openIfExists())
    if (!store) return nothingToClean(options)
    const operator = await openContext(store, settings)
    const { classified, ended } = await selectForCleaning(
      context,
      store,
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
  return {
    data: deletes ? { runs: [], deleted: [], dryRun } : cleaningView(NOTHING_LIVE, [], dryRun),
    print: (writer) => printSummary(writer, NOTHING_LIVE),
  }
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
    // Rows of tables of the user's own are marked, never deleted.
    const isOwn = ({ adopted }: Run): boolean => adopted === undefined
    const dead = classified.dead.filter(({ run }) => isOwn(run))
    return { classified: { ...classified, dead }, ended: items.filter(isOwn) }
  }
  const named: Run[] = []
  for (const text of args.runs) named.push(await findRun(store, text))
  return selectRuns(classified, named, options.delete)
}

async function markDead(
  context: Clean,
  operator: OperatorContext,
  classified: ClassifiedRuns,
): Promise<CommandResult> {
  const { options, output, json } = context
  const { dead } = classified
  const markable = dead.filter(({ run, decision }) => blockedReason(run, decision) === null)
  let cleaned: Verdict[] = []
  let isShown = false
  if (dead.length > 0 && !options.dryRun) {
    if (markable.length > 0 && !options.auto && !json) {
      const writer = output.makeWriter()
      printSummary(writer, classified)
      await output.write(writer.toString())
      isShown = true
    }
    const question = `Mark ${plural(markable.length, 'dead run')} as ${finalStatus(markable)}?`
    const yes = { yes: options.auto, alternative: 'add --auto, or --dry-run to only look' }
    // Where none can be marked there is nothing to ask: each is told of with the reason.
    if (markable.length === 0 || (await confirm(output, question, yes)))
      cleaned = await cleanRuns(operator, dead)
  }
  const left = dead.length - cleaned.filter(({ applied }) => applied).length
  return {
    data: cleaningView(classified, cleaned, options.dryRun),
    print: (writer) => {
      if (!isShown) printSummary(writer, classified)
      if (dead.length > 0) printCleaned(writer, markable, cleaned, options.dryRun)
    },
    exitCode: left > 0 ? EXIT.needsAttention : EXIT.done,
  }
}

const CLEANED = '“Timeout – auto-cleaned”'

/** Rows of a user's own table get a word of their own. */
function finalStatus(dead: readonly AssessedRun[]): string {
  return dead.some(({ run }) => run.adopted) ? 'ended' : CLEANED
}

/** `able`: those that can be marked. */
function printCleaned(
  writer: TextWriter,
  markable: readonly AssessedRun[],
  cleaned: readonly Verdict[],
  dryRun: boolean,
): void {
  writer.blank()
  if (dryRun) {
    const would = `Without --dry-run ${plural(markable.length, 'dead run')} would be marked`
    writer.paragraph(`Nothing was changed. ${would} as ${finalStatus(markable)}.`)
  } else if (cleaned.length === 0) writer.paragraph('Nothing was changed.')
  // What was not marked comes first: a person may have to look at it.
  const sorted = cleaned.toSorted((a, b) => Number(a.applied) - Number(b.applied))
  for (const { run, source, row, applied, blockedBy } of sorted.slice(0, LINES_MAX)) {
    const id = shortId(run)
    const what = `${id} of ${formatSource({ source, adopted: row })}`
    writer.paragraph(
      applied
        ? `- ${what} is marked as ${row ? 'ended' : CLEANED}; its data is kept. Undo: \`unstuck revert ${id}\``
        : blockedBy === undefined
          ? `- ${what} was left alone: it changed meanwhile.`
          : `- ${what} was left alone. ${blockedBy}.`,
    )
  }
  const rest = sorted.slice(LINES_MAX)
  const marked = rest.filter(({ applied }) => applied).length
  const kept = rest.length - marked
  if (marked > 0)
    writer.paragraph(`… and ${marked} more are marked; \`unstuck history\` lists them.`)
  if (kept > 0) writer.paragraph(`… and ${kept} more were left alone; \`--json\` has all.`)
}
