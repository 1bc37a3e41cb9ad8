import { EXIT, UsageError } from '../../../core/model/errors.ts'
import { shortId } from '../../../core/model/id.ts'
import type { Run } from '../../../core/model/run.ts'
import { whyNot, type Verdict } from '../../../core/model/verdict.ts'
import { cleanAll, sumUp, type Summed } from '../../../core/recovery/clean.ts'
import { dataFolder } from '../../../lib/files/data-folder.ts'
import type { JudgedRun } from '../../../core/recovery/assess.ts'
import type { Door } from '../../../core/recovery/recover.ts'
import type { Store } from '../../../core/store/store.ts'
import { RISKY_CLEANING_MS } from '../../../app/config.ts'
import { cleaningView, onlyThese, type Chosen } from '../../../presenters/cleaning.ts'
import { defineCommand, type Answer, type Context } from '../command.ts'
import { isAgreed } from '../confirm.ts'
import { deleteRuns } from '../deletion.ts'
import { doorOf } from '../../../app/open-context.ts'
import { findRun } from '../../../presenters/find.ts'
import { argument, option } from '../option.ts'
import { LINES_MAX } from '../../../lib/terminal/long-lists.ts'
import type { Paper } from '../../../lib/terminal/text-writer.ts'
import { plural, sourceOf } from '../../../presenters/format.ts'
import { NOTHING_LIVE, printSummary, riskyAge } from '../summary-text.ts'

const args = { runs: argument.rest('these runs only; else every dead one') }
const options = {
  dryRun: option.flag('only show what would be done'),
  auto: option.flag('ask nothing: for cron'),
  age: option.duration('AGE', 'dead from this age on, instead of what the policy says', undefined),
  delete: option.flag('delete instead of marking: what is dead and what was cleaned before'),
  withItems: option.flag('with --delete: the items that no other run has saved since go too'),
  confirm: option.text('WORDS', 'with --delete: the words that would have to be typed'),
}
type Clean = Context<typeof args, typeof options>

export const clean = defineCommand({
  name: 'clean',
  summary: 'Resumable and dead runs side by side; marks the dead as “Timeout – auto-cleaned”.',
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
    const risky = riskyAge(options.age, RISKY_CLEANING_MS)
    if (risky) output.note(risky)
    const store = await (context.args.runs.length > 0
      ? database.openExisting()
      : database.openIfAny())
    if (!store) return nothingToClean(options)
    const door = await doorOf(store, settings)
    const { summed, ended } = await chosen(context, store, await sumUp(door, options.age))
    if (!options.delete) return markThem(context, door, summed)
    const base = dataFolder(await database.address(), process.cwd())
    return deleteRuns(door, { dead: summed.dead, ended }, { ...options, base, output, json })
  },
})

function nothingToClean({ delete: deletes, dryRun }: Clean['options']): Answer {
  return {
    data: deletes ? { runs: [], deleted: [], dryRun } : cleaningView(NOTHING_LIVE, [], dryRun),
    text: (paper) => printSummary(paper, NOTHING_LIVE, 0),
  }
}

const DELETE_MAX = 500

/** Only the named runs, if any are; with `--delete` else what was cleaned before too. */
async function chosen(
  { args, options, output }: Clean,
  store: Store,
  summed: Summed,
): Promise<Chosen> {
  if (args.runs.length === 0) {
    if (!options.delete) return { summed, ended: [] }
    const { items, next } = await store.runs({ statuses: ['abandoned'], limit: DELETE_MAX })
    if (next !== null) output.note(`Note: of those cleaned before, the newest ${DELETE_MAX} only`)
    // Rows of tables of the user's own are marked, never deleted.
    const isOwn = ({ adopted }: Run): boolean => adopted === undefined
    const dead = summed.dead.filter(({ run }) => isOwn(run))
    return { summed: { ...summed, dead }, ended: items.filter(isOwn) }
  }
  const named: Run[] = []
  for (const text of args.runs) named.push(await findRun(store, text))
  return onlyThese(summed, named, options.delete)
}

async function markThem(context: Clean, door: Door, summed: Summed): Promise<Answer> {
  const { options, output, json } = context
  const { dead } = summed
  const able = dead.filter(({ run, decision }) => whyNot(run, decision) === null)
  const now = await door.store.now()
  let cleaned: Verdict[] = []
  let isShown = false
  if (dead.length > 0 && !options.dryRun) {
    if (able.length > 0 && !options.auto && !json) {
      const paper = output.paper()
      printSummary(paper, summed, now)
      await output.write(paper.toString())
      isShown = true
    }
    const question = `Mark ${plural(able.length, 'dead run')} as ${endOf(able)}?`
    const yes = { yes: options.auto, elsewise: 'add --auto, or --dry-run to only look' }
    // Where none can be marked there is nothing to ask: each is told of with the reason.
    if (able.length === 0 || (await isAgreed(output, question, yes)))
      cleaned = await cleanAll(door, dead)
  }
  const left = dead.length - cleaned.filter(({ applied }) => applied).length
  return {
    data: cleaningView(summed, cleaned, options.dryRun),
    text: (paper) => {
      if (!isShown) printSummary(paper, summed, now)
      if (dead.length > 0) printCleaned(paper, able, cleaned, options.dryRun)
    },
    exitCode: left > 0 ? EXIT.leftForAPerson : EXIT.done,
  }
}

const CLEANED = '“Timeout – auto-cleaned”'

/** Rows of a user's own table get a word of their own. */
function endOf(dead: readonly JudgedRun[]): string {
  return dead.some(({ run }) => run.adopted) ? 'ended' : CLEANED
}

/** `able`: those that can be marked. */
function printCleaned(
  paper: Paper,
  able: readonly JudgedRun[],
  cleaned: readonly Verdict[],
  dryRun: boolean,
): void {
  paper.blank()
  if (dryRun) {
    const would = `Without --dry-run ${plural(able.length, 'dead run')} would be marked`
    paper.say(`Nothing was changed. ${would} as ${endOf(able)}.`)
  } else if (cleaned.length === 0) paper.say('Nothing was changed.')
  // What was not marked comes first: a person may have to look at it.
  const sorted = cleaned.toSorted((a, b) => Number(a.applied) - Number(b.applied))
  for (const { run, source, row, applied, cannot } of sorted.slice(0, LINES_MAX)) {
    const id = shortId(run)
    const what = `${id} of ${sourceOf({ source, adopted: row })}`
    paper.say(
      applied
        ? `- ${what} is marked as ${row ? 'ended' : CLEANED}; its data is kept. Undo: \`unstuck revert ${id}\``
        : cannot === undefined
          ? `- ${what} was left alone: it changed meanwhile.`
          : `- ${what} was left alone. ${cannot}.`,
    )
  }
  const rest = sorted.slice(LINES_MAX)
  const marked = rest.filter(({ applied }) => applied).length
  const kept = rest.length - marked
  if (marked > 0) paper.say(`… and ${marked} more are marked; \`unstuck history\` lists them.`)
  if (kept > 0) paper.say(`… and ${kept} more were left alone; \`--json\` has all.`)
}
