import { writeFileSync } from 'node:fs'
import process from 'node:process'
import { findTables, type DatabaseScan } from '../../../features/adopted/wizard/find-tables.ts'
import { qualifiedName } from '../../../features/adopted/wizard/found-table.ts'
import {
  propose,
  type RejectedTable,
  type Proposal,
} from '../../../features/adopted/wizard/propose.ts'
import { closest } from '../../../core/model/closest.ts'
import { messageOf, NotFoundError, UsageError } from '../../../core/model/errors.ts'
import { EXIT } from '../../../core/model/exit-codes.ts'
import { sourceMistake } from '../../../core/model/source.ts'
import { loadSettings, type Settings } from '../../../app/config.ts'
import { adoptedText, configText, type ConfigEntry } from '../adopt/config-text.ts'
import { dryRun } from '../adopt/dry-run.ts'
import {
  adoptedAs,
  uniqueName,
  findConfigTarget,
  type ConfigTarget,
} from '../adopt/config-target.ts'
import {
  grantsFor,
  printDenied,
  printDoubtful,
  printRejected,
  printProposal,
  type EvaluatedProposal,
} from '../adopt/print.ts'
import { defineCommand } from '../command.ts'
import { confirm } from '../confirm.ts'
import { option } from '../option.ts'
import type { Output } from '../output.ts'
import type { TextWriter } from '../../../lib/terminal/text-writer.ts'
import { plural } from '../../../presenters/format.ts'

type AdoptRequest = {
  readonly table: string | undefined
  readonly name: string | undefined
  readonly kind: 'runs' | 'targets' | undefined
  readonly status: string | undefined
}

export const adopt = defineCommand({
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
    checkRequest({ table, name, kind, status })
    const address = await database.address()
    const scan = await scanDatabase(address, table)
    const results = scan.tables.map((one) =>
      propose(one, { kind, status, isRequested: table !== undefined }),
    )
    const proposals = results.filter((one): one is Proposal => 'options' in one)
    const rejected = results.filter((one): one is RejectedTable => !('options' in one))
    const settings = await loadSettings(process.cwd())
    const configTarget = findConfigTarget(address, { configured: settings.db, isReplaced: force })
    const chosen = proposals.filter(({ isSure }) => isSure || table !== undefined)
    const evaluated = await evaluate(chosen, {
      address,
      settings,
      configTarget,
      name,
      log: (line) => output.note(line),
    })
    const entries = evaluated
      .filter(({ adopted }) => adopted === null || force)
      .map(({ proposal, name }): ConfigEntry => ({
        ...proposal,
        name,
        dbCode: configTarget.tablesDbCode,
      }))
    const report: Report = {
      scan,
      evaluated,
      doubtful: proposals.filter((one) => !chosen.includes(one)),
      rejected,
      entries,
      configTarget,
    }
    if (!json) await print(output, (writer) => printReport(writer, report, table !== undefined))
    const shouldAsk = !write && !json && output.canAsk && !configTarget.exists && entries.length > 0
    if (shouldAsk) await printConfig(output, report, write)
    const shouldWrite =
      write ||
      (shouldAsk && (await confirm(output, `Write ${configTarget.path}?`, CONFIRM_OPTIONS)))
    const action = shouldWrite && entries.length > 0 ? writeConfig(report, force) : 'shown'
    const exitCode = exitCodeOf(report, action)
    if (json) return { data: view(report, action), print: () => {}, exitCode }
    if (!shouldAsk && (action === 'kept' || action === 'shown'))
      await printConfig(output, report, write)
    await print(output, (writer) => printOutcome(writer, report, action))
    return exitCode
  },
})

const CONFIRM_OPTIONS = { yes: false, alternative: 'add --write' }

type Report = {
  readonly scan: DatabaseScan
  readonly evaluated: readonly EvaluatedProposal[]
  readonly doubtful: readonly Proposal[]
  readonly rejected: readonly RejectedTable[]
  /** What goes into the config. */
  readonly entries: readonly ConfigEntry[]
  readonly configTarget: ConfigTarget
}

function checkRequest({ table, name, kind, status }: AdoptRequest): void {
  const about = { '--name': name, '--kind': kind, '--status': status }
  const alone = Object.entries(about).find(([, value]) => value !== undefined)?.[0]
  if (alone && table === undefined)
    throw new UsageError(`${alone} is about one table: add --table.`)
  const mistake = name === undefined ? null : sourceMistake(name)
  if (mistake) throw new UsageError(`--name ${mistake}.`)
}

async function scanDatabase(address: string, table: string | undefined): Promise<DatabaseScan> {
  const scan = await findTables(address, table)
  if (table === undefined || scan.tables.length > 0) return scan
  const { denied } = scan
  if (denied && denied.tables.length > 0)
    throw new UsageError(
      `The login ${denied.login} may not read ${table}. What gives it the right: ${grantsFor(denied).join(' ')}`,
    )
  const names = (await findTables(address)).tables.map(qualifiedName)
  const hint = closest(table, names) ?? names.find((name) => name.endsWith(`.${table}`))
  const listing = `There are ${names.slice(0, 10).join(', ')}${names.length > 10 ? ' …' : ''}.`
  throw new NotFoundError(
    `table ${JSON.stringify(table)} in ${scan.location}`,
    hint ? `Did you mean ${hint}?` : names.length > 0 ? listing : 'There is none at all.',
  )
}

type EvaluateOptions = {
  readonly address: string
  readonly settings: Settings
  readonly configTarget: ConfigTarget
  readonly name: string | undefined
  readonly log: (line: string) => void
}

/** Names each, and says what would become of its rows by the policies that would count for it. */
async function evaluate(
  proposals: readonly Proposal[],
  { address, settings, configTarget, name: wanted, log }: EvaluateOptions,
): Promise<EvaluatedProposal[]> {
  const taken = new Set(settings.adopted.map(({ name }) => name))
  const evaluated: EvaluatedProposal[] = []
  for (const proposal of proposals) {
    const adopted = adoptedAs(proposal.table, address, settings.adopted, configTarget.ownAddress)
    const name = adopted ?? wanted ?? uniqueName(proposal.table, taken)
    if (adopted === null && taken.has(name))
      throw new UsageError(`The config has a table with the name ${name} already: choose another.`)
    taken.add(name)
    const own = { ...proposal.options, db: address }
    const { adopted: tables, policyOf } =
      adopted === null ? await loadSettings(process.cwd(), { adopted: { [name]: own } }) : settings
    const found = tables.find((table) => table.name === name)!
    const mapping = { ...found, db: address }
    evaluated.push({ proposal, name, adopted, dryRun: await dryRun({ mapping, policyOf, log }) })
  }
  return evaluated
}

type ConfigAction = 'written' | 'replaced' | 'kept' | 'shown'

/** A config that somebody wrote is theirs: it is not touched, unless they say so. */
function writeConfig({ entries, configTarget }: Report, force: boolean): ConfigAction {
  const { path, exists } = configTarget
  if (exists && !force) return 'kept'
  try {
    writeFileSync(path, configText(entries, configTarget.ownDbCode), { flag: force ? 'w' : 'wx' })
  } catch (error) {
    throw new UsageError(`${path} could not be written: ${messageOf(error)}`, { cause: error })
  }
  return exists ? 'replaced' : 'written'
}

function view(
  { scan, evaluated, doubtful, rejected, entries, configTarget }: Report,
  action: ConfigAction,
) {
  return {
    database: scan.location,
    tables: scan.tables.length,
    proposals: [
      ...evaluated.map(({ proposal, name, adopted, dryRun }) => ({
        ...proposalView(proposal),
        name,
        adopted: adopted !== null,
        outlook: dryRun && 'live' in dryRun ? dryRun : null,
        trouble: dryRun && 'trouble' in dryRun ? dryRun.trouble : null,
      })),
      ...doubtful.map((proposal) => ({
        ...proposalView(proposal),
        name: null,
        adopted: false,
        outlook: null,
        trouble: null,
      })),
    ],
    passedOver: rejected.map(({ table, because }) => ({ table, because })),
    unreadable: (scan.denied?.tables ?? []).map(qualifiedName),
    config: {
      path: configTarget.path,
      action,
      text: entries.length > 0 ? textFor({ entries, configTarget }) : null,
    },
  }
}

function proposalView(proposal: Proposal) {
  const { table, kind, isSure, signs, doubts, columns, unused, statuses, notes } = proposal
  return {
    table,
    kind,
    sure: isSure,
    signs,
    doubts,
    columns,
    unused,
    words: statuses.map(({ meaning, word, count, because }) => ({ meaning, word, count, because })),
    notes,
  }
}

/** The whole config where there is none, else the part that goes into it. */
function textFor({ entries, configTarget }: Pick<Report, 'entries' | 'configTarget'>): string {
  return configTarget.exists ? adoptedText(entries) : configText(entries, configTarget.ownDbCode)
}

async function print(output: Output, write: (writer: TextWriter) => void): Promise<void> {
  const writer = output.makeWriter()
  write(writer)
  await output.write(writer.toString())
}

function printReport(
  writer: TextWriter,
  { scan, evaluated, doubtful, rejected }: Report,
  isRequested: boolean,
): void {
  const { location, tables, denied } = scan
  writer.paragraph(`${plural(tables.length, 'table')} in ${location}. Nothing there is changed.`)
  for (const one of evaluated) printProposal(writer, one)
  printDoubtful(writer, doubtful)
  printRejected(writer, rejected, isRequested)
  const isDenied = tables.length === 0 && denied !== null && denied.tables.length > 0
  if (denied && !isRequested) printDenied(writer, denied, isDenied)
  if (evaluated.length > 0 || isDenied) return
  writer.blank()
  writer.paragraph(
    isRequested
      ? '`--status COLUMN` says which of its columns has the words.'
      : 'No table looks like runs: a status with a word for being at work, an id and a time make one. ' +
          '`--table NAME` looks at one more closely.',
  )
  writer.paragraph('How one is mapped by hand: docs/adopted-tables.md.')
}

async function printConfig(
  output: Output,
  { entries, configTarget }: Report,
  write: boolean,
): Promise<void> {
  if (entries.length === 0) return
  await print(output, (writer) => {
    writer.blank()
    if (configTarget.exists) {
      const why = write ? `${configTarget.path} is yours and was left as it is. ` : ''
      writer.paragraph(
        `${why}Paste this into it, or the tables into the \`adopted\` that is there:`,
      )
    } else {
      writer.paragraph(`This is what \`--write\` writes to ${configTarget.path}:`)
    }
    writer.blank()
  })
  // Code that was cut to the width of a terminal would be of no use.
  const writer = output.makeWriter(Infinity)
  for (const line of textFor({ entries, configTarget }).trimEnd().split('\n')) writer.line(line)
  await output.write(writer.toString())
}

function printOutcome(
  writer: TextWriter,
  { entries, evaluated, configTarget }: Report,
  action: ConfigAction,
): void {
  if (evaluated.length === 0) return
  writer.blank()
  if (entries.length === 0)
    return writer.paragraph(`All of this is in ${configTarget.path} already.`)
  if (action === 'written' || action === 'replaced')
    writer.paragraph({ text: action, style: 'good' }, ` ${configTarget.path}`)
  writer.line({ text: 'Then', style: 'strong' })
  if (configTarget.variable !== null) writer.paragraph(`  ${variableHint(configTarget.variable)}`)
  writer.paragraph('  `npx unstuck recover --dry-run`')
  writer.paragraph('  `npx unstuck serve`')
}

/** The config reads it whenever Unstuck runs, also from another terminal or on another day. */
function variableHint({ name, isSet }: NonNullable<ConfigTarget['variable']>): string {
  return isSet
    ? `Have ${name} set wherever Unstuck runs, as it is here: the config reads the address from it.`
    : `Set ${name} to the address wherever Unstuck runs: with its password, it is not written down.`
}

function exitCodeOf({ evaluated, entries }: Report, action: ConfigAction): number {
  const needsAttention = evaluated.length === 0 || (entries.length > 0 && action === 'kept')
  return needsAttention ? EXIT.needsAttention : EXIT.done
}
