import { writeFileSync } from 'node:fs'
import process from 'node:process'
import { findTables, type Finding } from '../../../features/adopted/wizard/find-tables.ts'
import { tableName } from '../../../features/adopted/wizard/found-table.ts'
import {
  propose,
  type PassedOver,
  type Proposal,
} from '../../../features/adopted/wizard/propose.ts'
import { closest } from '../../../core/model/closest.ts'
import { EXIT, messageOf, NotFound, UsageError } from '../../../core/model/errors.ts'
import { sourceMistake } from '../../../core/model/source.ts'
import { loadSettings, type Settings } from '../../../app/config.ts'
import { blockText, configText, type Entry } from '../adopt/config-text.ts'
import { outlookOn } from '../adopt/dry-run.ts'
import { adoptedAs, nameFor, placeOf, type Place } from '../adopt/place.ts'
import {
  grantsFor,
  printBarred,
  printDoubtful,
  printPassedOver,
  printProposal,
  type Shown,
} from '../adopt/text.ts'
import { defineCommand } from '../command.ts'
import { isAgreed } from '../confirm.ts'
import { option } from '../option.ts'
import type { Output } from '../output.ts'
import type { Paper } from '../../../lib/terminal/text-writer.ts'
import { plural } from '../../../presenters/format.ts'

type Wanted = {
  readonly table: string | undefined
  readonly name: string | undefined
  readonly kind: 'runs' | 'targets' | undefined
  readonly status: string | undefined
}

export const adopt = defineCommand({
  name: 'adopt',
  summary: 'Find tables of runs in a database of your own, judge them dry, write the config.',
  examples: [
    'unstuck adopt --db sqlite:app.db  # looks, proposes, changes nothing',
    'unstuck adopt --db "$DATABASE_URL" --write  # and writes unstuck.config.ts',
    'unstuck adopt --db "$DATABASE_URL" --table crawler.crawl_runs --name courses',
  ],
  options: {
    table: option.text('NAME', 'only this table, whatever speaks against it'),
    name: option.text('NAME', 'what the config calls it; default: as the table'),
    status: option.text('COLUMN', 'the column with its status; default: as it looks'),
    kind: option.choice(['runs', 'targets'], 'what a row is; default: as it looks', undefined),
    write: option.flag('write the config, where there is none yet'),
    force: option.flag('write it, and replace one that is there already'),
  },

  async run({ options, database, output, json }) {
    const { table, name, kind, status, force } = options
    const write = options.write || force
    checkWanted({ table, name, kind, status })
    const address = await database.address()
    const finding = await look(address, table)
    const answers = finding.tables.map((one) =>
      propose(one, { kind, status, asked: table !== undefined }),
    )
    const proposals = answers.filter((one): one is Proposal => 'options' in one)
    const passed = answers.filter((one): one is PassedOver => !('options' in one))
    const settings = await loadSettings(process.cwd())
    const place = placeOf(address, { configured: settings.db, isReplaced: force })
    const chosen = proposals.filter(({ isSure }) => isSure || table !== undefined)
    const shown = await judge(chosen, {
      address,
      settings,
      place,
      name,
      log: (line) => output.note(line),
    })
    const entries = shown
      .filter(({ adopted }) => adopted === null || force)
      .map(({ proposal, name }): Entry => ({ ...proposal, name, db: place.tablesDb }))
    const report: Report = {
      finding,
      shown,
      doubtful: proposals.filter((one) => !chosen.includes(one)),
      passed,
      entries,
      place,
    }
    if (!json) await print(output, (paper) => printReport(paper, report, table !== undefined))
    const asks = !write && !json && output.canAsk && !place.isThere && entries.length > 0
    if (asks) await printConfig(output, report, write)
    const isWanted = write || (asks && (await isAgreed(output, `Write ${place.path}?`, ASKED)))
    const action = isWanted && entries.length > 0 ? put(report, force) : 'shown'
    const exitCode = exitOf(report, action)
    if (json) return { data: view(report, action), text: () => {}, exitCode }
    if (!asks && (action === 'kept' || action === 'shown')) await printConfig(output, report, write)
    await print(output, (paper) => printOutcome(paper, report, action))
    return exitCode
  },
})

const ASKED = { yes: false, elsewise: 'add --write' }

type Report = {
  readonly finding: Finding
  readonly shown: readonly Shown[]
  readonly doubtful: readonly Proposal[]
  readonly passed: readonly PassedOver[]
  /** What goes into the config. */
  readonly entries: readonly Entry[]
  readonly place: Place
}

function checkWanted({ table, name, kind, status }: Wanted): void {
  const about = { '--name': name, '--kind': kind, '--status': status }
  const alone = Object.entries(about).find(([, value]) => value !== undefined)?.[0]
  if (alone && table === undefined)
    throw new UsageError(`${alone} is about one table: add --table.`)
  const mistake = name === undefined ? null : sourceMistake(name)
  if (mistake) throw new UsageError(`--name ${mistake}.`)
}

async function look(address: string, table: string | undefined): Promise<Finding> {
  const finding = await findTables(address, table)
  if (table === undefined || finding.tables.length > 0) return finding
  const { barred } = finding
  if (barred && barred.tables.length > 0)
    throw new UsageError(
      `The login ${barred.login} may not read ${table}. What gives it the right: ${grantsFor(barred).join(' ')}`,
    )
  const names = (await findTables(address)).tables.map(tableName)
  const hint = closest(table, names) ?? names.find((name) => name.endsWith(`.${table}`))
  const there = `There are ${names.slice(0, 10).join(', ')}${names.length > 10 ? ' …' : ''}.`
  throw new NotFound(
    `table ${JSON.stringify(table)} in ${finding.where}`,
    hint ? `Did you mean ${hint}?` : names.length > 0 ? there : 'There is none at all.',
  )
}

type Judging = {
  readonly address: string
  readonly settings: Settings
  readonly place: Place
  readonly name: string | undefined
  readonly log: (line: string) => void
}

/** Names each, and says what would become of its rows by the policies that would count for it. */
async function judge(
  proposals: readonly Proposal[],
  { address, settings, place, name: wanted, log }: Judging,
): Promise<Shown[]> {
  const taken = new Set(settings.adopted.map(({ name }) => name))
  const shown: Shown[] = []
  for (const proposal of proposals) {
    const adopted = adoptedAs(proposal.table, address, settings.adopted, place.own)
    const name = adopted ?? wanted ?? nameFor(proposal.table, taken)
    if (adopted === null && taken.has(name))
      throw new UsageError(`The config has a table with the name ${name} already: choose another.`)
    taken.add(name)
    const own = { ...proposal.options, db: address }
    const { adopted: tables, policyOf } =
      adopted === null ? await loadSettings(process.cwd(), { adopted: { [name]: own } }) : settings
    const found = tables.find((table) => table.name === name)!
    const mapping = { ...found, db: address }
    shown.push({ proposal, name, adopted, outlook: await outlookOn({ mapping, policyOf, log }) })
  }
  return shown
}

type Action = 'written' | 'replaced' | 'kept' | 'shown'

/** A config that somebody wrote is theirs: it is not touched, unless they say so. */
function put({ entries, place }: Report, force: boolean): Action {
  const { path, isThere } = place
  if (isThere && !force) return 'kept'
  try {
    writeFileSync(path, configText(entries, place.ownDb), { flag: force ? 'w' : 'wx' })
  } catch (error) {
    throw new UsageError(`${path} could not be written: ${messageOf(error)}`, { cause: error })
  }
  return isThere ? 'replaced' : 'written'
}

function view({ finding, shown, doubtful, passed, entries, place }: Report, action: Action) {
  return {
    database: finding.where,
    tables: finding.tables.length,
    proposals: [
      ...shown.map(({ proposal, name, adopted, outlook }) => ({
        ...proposalView(proposal),
        name,
        adopted: adopted !== null,
        outlook: outlook && 'live' in outlook ? outlook : null,
        trouble: outlook && 'trouble' in outlook ? outlook.trouble : null,
      })),
      ...doubtful.map((proposal) => ({
        ...proposalView(proposal),
        name: null,
        adopted: false,
        outlook: null,
        trouble: null,
      })),
    ],
    passedOver: passed.map(({ table, because }) => ({ table, because })),
    unreadable: (finding.barred?.tables ?? []).map(tableName),
    config: {
      path: place.path,
      action,
      text: entries.length > 0 ? textFor({ entries, place }) : null,
    },
  }
}

function proposalView(proposal: Proposal) {
  const { table, kind, isSure, signs, doubts, columns, unused, words, notes } = proposal
  return {
    table,
    kind,
    sure: isSure,
    signs,
    doubts,
    columns,
    unused,
    words: words.map(({ meaning, word, count, because }) => ({ meaning, word, count, because })),
    notes,
  }
}

/** The whole config where there is none, else the part that goes into it. */
function textFor({ entries, place }: Pick<Report, 'entries' | 'place'>): string {
  return place.isThere ? blockText(entries) : configText(entries, place.ownDb)
}

async function print(output: Output, write: (paper: Paper) => void): Promise<void> {
  const paper = output.paper()
  write(paper)
  await output.write(paper.toString())
}

function printReport(
  paper: Paper,
  { finding, shown, doubtful, passed }: Report,
  isAsked: boolean,
): void {
  const { where, tables, barred } = finding
  paper.say(`${plural(tables.length, 'table')} in ${where}. Nothing there is changed.`)
  for (const one of shown) printProposal(paper, one)
  printDoubtful(paper, doubtful)
  printPassedOver(paper, passed, isAsked)
  const isBarred = tables.length === 0 && barred !== null && barred.tables.length > 0
  if (barred && !isAsked) printBarred(paper, barred, isBarred)
  if (shown.length > 0 || isBarred) return
  paper.blank()
  paper.say(
    isAsked
      ? '`--status COLUMN` says which of its columns has the words.'
      : 'No table looks like runs: a status with a word for being at work, an id and a time make one. ' +
          '`--table NAME` looks at one more closely.',
  )
  paper.say('How one is mapped by hand: docs/adopted-tables.md.')
}

async function printConfig(
  output: Output,
  { entries, place }: Report,
  write: boolean,
): Promise<void> {
  if (entries.length === 0) return
  await print(output, (paper) => {
    paper.blank()
    if (place.isThere) {
      const why = write ? `${place.path} is yours and was left as it is. ` : ''
      paper.say(`${why}Paste this into it, or the tables into the \`adopted\` that is there:`)
    } else {
      paper.say(`This is what \`--write\` writes to ${place.path}:`)
    }
    paper.blank()
  })
  // Code that was cut to the width of a terminal would be of no use.
  const paper = output.paper(Infinity)
  for (const line of textFor({ entries, place }).trimEnd().split('\n')) paper.line(line)
  await output.write(paper.toString())
}

function printOutcome(paper: Paper, { entries, shown, place }: Report, action: Action): void {
  if (shown.length === 0) return
  paper.blank()
  if (entries.length === 0) return paper.say(`All of this is in ${place.path} already.`)
  if (action === 'written' || action === 'replaced')
    paper.say({ text: action, ink: 'good' }, ` ${place.path}`)
  paper.line({ text: 'Then', ink: 'strong' })
  if (place.variable !== null) paper.say(`  ${variableWords(place.variable)}`)
  paper.say('  `npx unstuck recover --dry-run`')
  paper.say('  `npx unstuck serve`')
}

/** The config reads it whenever Unstuck runs, also from another terminal or on another day. */
function variableWords({ name, isSet }: NonNullable<Place['variable']>): string {
  return isSet
    ? `Have ${name} set wherever Unstuck runs, as it is here: the config reads the address from it.`
    : `Set ${name} to the address wherever Unstuck runs: with its password, it is not written down.`
}

function exitOf({ shown, entries }: Report, action: Action): number {
  const isLeft = shown.length === 0 || (entries.length > 0 && action === 'kept')
  return isLeft ? EXIT.leftForAPerson : EXIT.done
}
