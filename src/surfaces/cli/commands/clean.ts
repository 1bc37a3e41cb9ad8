import { EXIT, UsageError } from '../../../model/errors.ts'
import { shortId } from '../../../model/id.ts'
import { isLive, totalTargets, type Run } from '../../../model/run.ts'
import type { Verdict } from '../../../model/verdict.ts'
import { cleanAll, sumUp, type Summed } from '../../../runtime/cleaning.ts'
import type { Door } from '../../../runtime/recovery.ts'
import { deleteRun } from '../../../runtime/steering.ts'
import type { Store } from '../../../store/store.ts'
import { RISKY_CLEANING_MS } from '../../config.ts'
import { verdictView } from '../../view.ts'
import { defineCommand, type Answer, type Context } from '../command.ts'
import { isAgreed, isTyped } from '../confirm.ts'
import { doorOf } from '../door.ts'
import { findRun } from '../find-run.ts'
import { argument, option } from '../option.ts'
import type { Paper } from '../paper/paper.ts'
import { plural } from '../paper/words.ts'
import { printSummary, riskyAge, summaryView } from '../summary-text.ts'

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
    const { options, database, settings, output } = context
    if (options.withItems && !options.delete)
      throw new UsageError('--with-items goes with --delete.')
    const risky = riskyAge(options.age, RISKY_CLEANING_MS)
    if (risky) output.note(risky)
    const store = await database.openIfAny()
    if (!store)
      return {
        data: { ...summaryView(NOTHING), cleaned: [] },
        text: (paper) => printSummary(paper, NOTHING, 0),
      }
    const door = await doorOf(store, settings)
    const summed = await chosen(context, store, await sumUp(door, options.age))
    return options.delete ? deleteThem(context, door, summed) : markThem(context, door, summed)
  },
})

const NOTHING: Summed = { total: 0, active: [], resumable: [], dead: [] }

/** Only the named runs, if any are. */
async function chosen({ args, options }: Clean, store: Store, summed: Summed): Promise<Summed> {
  if (args.runs.length === 0) return summed
  const ids = new Set<string>()
  for (const text of args.runs) {
    const { id, status } = await findRun(store, text)
    ids.add(id)
    const isDead = summed.dead.some(({ run }) => run.id === id)
    if (isDead || (options.delete && !isLive(status))) continue
    throw new UsageError(
      isLive(status)
        ? `Run ${text} is not dead. \`unstuck explain ${text}\` says why; \`unstuck cancel ${text}\` ends it whatever it is.`
        : `Run ${text} is ${status}: there is nothing to clean.`,
    )
  }
  return { ...summed, dead: summed.dead.filter(({ run }) => ids.has(run.id)) }
}

async function markThem(context: Clean, door: Door, summed: Summed): Promise<Answer> {
  const { options, output, json } = context
  const { dead } = summed
  const now = await door.store.now()
  let cleaned: Verdict[] = []
  if (dead.length > 0 && !options.dryRun) {
    if (!options.auto && !json) await show(context, (paper) => printSummary(paper, summed, now))
    const question = `Mark ${plural(dead.length, 'dead run')} as “Timeout – auto-cleaned”?`
    const yes = { yes: options.auto, elsewise: 'add --auto, or --dry-run to only look' }
    if (await isAgreed(output, question, yes)) cleaned = await cleanAll(door, dead)
  }
  const isShown = dead.length > 0 && !options.dryRun && !options.auto
  const left = dead.length - cleaned.filter(({ applied }) => applied).length
  return {
    data: { ...summaryView(summed), cleaned: cleaned.map(verdictView) },
    text: (paper) => {
      if (!isShown) printSummary(paper, summed, now)
      printCleaned(paper, summed, cleaned, options.dryRun)
    },
    exitCode: left > 0 ? EXIT.leftForAPerson : EXIT.done,
  }
}

function printCleaned(
  paper: Paper,
  { dead }: Summed,
  cleaned: readonly Verdict[],
  dryRun: boolean,
): void {
  if (dead.length === 0) return
  paper.blank()
  if (dryRun)
    paper.say(
      `Nothing was changed. \`unstuck clean\` would mark ${plural(dead.length, 'dead run')}.`,
    )
  else if (cleaned.length === 0) paper.say('Nothing was changed.')
  for (const { run, source, applied } of cleaned) {
    const id = shortId(run)
    paper.say(
      applied
        ? `Run ${id} of ${source} is marked as “Timeout – auto-cleaned”; its data is kept. Undo: \`unstuck revert ${id}\``
        : `Run ${id} of ${source} was left alone: it changed meanwhile.`,
    )
  }
}

async function show({ output }: Clean, print: (paper: Paper) => void): Promise<void> {
  const paper = output.paper()
  print(paper)
  await output.write(paper.toString())
}

/** The dead and what was cleaned before, or the named ones that have ended. */
async function deleteThem(context: Clean, door: Door, summed: Summed): Promise<Answer> {
  const { options, args, output } = context
  const { store } = door
  const ended =
    args.runs.length > 0
      ? (await Promise.all(args.runs.map((text) => findRun(store, text)))).filter(
          ({ status }) => !isLive(status),
        )
      : (await store.runs({ status: 'abandoned', limit: DELETE_MAX })).items
  const runs = [...summed.dead.map(({ run }) => run), ...ended]
  const items = options.withItems ? 'their items that no other run has saved since' : 'no items'
  const plan = (paper: Paper): void => {
    if (runs.length === 0)
      return paper.say('Nothing to delete: no run is dead, and none was cleaned.')
    paper.say(`To be deleted: ${plural(runs.length, 'run')} with all their targets, and ${items}.`)
    for (const run of runs) paper.say(`- ${describe(run)}`)
  }
  const deleted: { run: string; source: string; targets: number; items: number }[] = []
  if (runs.length > 0 && !options.dryRun) {
    if (!context.json) await show(context, plan)
    const words = `delete ${plural(runs.length, 'run')}`
    if (await isTyped(output, words, options.confirm)) {
      await cleanAll(door, summed.dead)
      for (const { id, source } of runs) {
        deleted.push({ run: id, source, ...(await deleteRun(door, id, options.withItems)) })
      }
    }
  }
  return {
    data: { runs: runs.map(({ id, source, status }) => ({ run: id, source, status })), deleted },
    text: (paper) => {
      if (options.dryRun || runs.length === 0) plan(paper)
      if (runs.length > 0 && deleted.length === 0) paper.say('Nothing was deleted.')
      for (const one of deleted) {
        paper.say(
          `Deleted run ${shortId(one.run)} of ${one.source}: ${plural(one.targets, 'target')}, ${plural(one.items, 'item')}.`,
        )
      }
    },
  }
}

const DELETE_MAX = 500

function describe(run: Run): string {
  return `${shortId(run.id)} of ${run.source}, ${run.status}: ${plural(totalTargets(run.counts), 'target')}, ${plural(run.counts.pages, 'page')}`
}
