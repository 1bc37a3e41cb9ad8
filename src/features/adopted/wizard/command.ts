import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import type { Settings } from '../../../contracts/settings.ts'
import { closest } from '../../../core/model/closest.ts'
import { messageOf, NotFoundError, UsageError } from '../../../core/model/errors.ts'
import { EXIT } from '../../../core/model/exit-codes.ts'
import { sourceMistake } from '../../../lib/validate/source.ts'
import { qualifiedName } from './columns.ts'
import {
  configText,
  describeConfig,
  findAdopted,
  uniqueName,
  type ConfigTarget,
} from './config-text.ts'
import { dryRun } from './dry-run.ts'
import { findTables, type DatabaseScan } from './find-tables.ts'
import { propose, type Proposal } from './propose.ts'
import {
  codeFor,
  grantsFor,
  printConfigHint,
  printFindings,
  printOutcome,
  reportView,
  type ConfigAction,
  type EvaluatedProposal,
  type Report,
} from './report.ts'
import { findConfig, configNameFor } from '../../../lib/files/config-file.ts'
import type { TextWriter } from '../../../lib/terminal/text-writer.ts'
import type { AdoptedOptions, Mapping } from '../mapping.ts'
import { ADOPTED_SECTION, readAdopted } from '../config.ts'
import { DEFAULT_POLICY } from '../../../core/model/policy.ts'
import { PRESETS } from '../../../core/model/policy-of.ts'
import { defineCommand, type Output } from '../../../contracts/command.ts'
import { defaultsTo, option, SHARED_OPTIONS } from '../../../contracts/options.ts'

export const command = defineCommand({
  examples: [
    'unstuck adopt --db sqlite:app.db  # proposes a config, changes nothing',
    'unstuck adopt --db "$DATABASE_URL" --write  # also writes unstuck.config.ts',
    'unstuck adopt --db "$DATABASE_URL" --table crawler.crawl_runs --name courses',
  ],
  options: {
    table: option.text('NAME', 'only this table, in spite of doubts'),
    name: defaultsTo('the name of the table', option.text('NAME', 'its name in the config')),
    statusColumn: defaultsTo('detected', option.text('COLUMN', 'the column with the status')),
    kind: defaultsTo('detected', option.choice(['runs', 'targets'], 'what a row is', undefined)),
    write: option.flag('write the config, unless there is one'),
    force: SHARED_OPTIONS.force,
  },

  async run({ options, database, settings: loadSettings, output, json }) {
    const { table, name, kind, statusColumn: status, force } = options
    const write = options.write || force
    checkRequest(table, { '--name': name, '--kind': kind, '--status-column': status })
    const address = await database.address()
    const scan = await scanDatabase(address, table)
    const isRequested = table !== undefined
    const results = scan.tables.map((one) => propose(one, { kind, status, isRequested }))
    const proposals = results.filter((one) => 'options' in one)
    const chosen = proposals.filter(({ isSure }) => isSure || isRequested)
    const settings = await loadSettings()
    const config = findConfigTarget(address, settings, force)
    const log = (line: string): void => output.note(line)
    const evaluated = await evaluate(chosen, name, { address, settings, config, log })
    const report: Report = {
      scan,
      evaluated,
      doubtful: proposals.filter((one) => !chosen.includes(one)),
      rejected: results.filter((one) => 'because' in one),
      entries: evaluated
        .filter(({ isAdopted }) => !isAdopted || force)
        .map(({ proposal, name }) => ({ ...proposal, name, dbCode: config.tablesDbCode })),
      config,
    }
    const hasEntries = report.entries.length > 0
    if (!json) await print(output, (writer) => printFindings(writer, report, isRequested))
    const shouldAsk = !write && !json && output.canAsk && !config.exists && hasEntries
    if (shouldAsk) await printConfig(output, report, false)
    const isConfirmed =
      shouldAsk && /^y(es)?$/i.test((await output.ask(`Write ${config.path}? [y/N]`)) ?? '')
    const action = hasEntries && (write || isConfirmed) ? writeConfig(report, force) : 'shown'
    const needsAttention = evaluated.length === 0 || (hasEntries && action === 'kept')
    const exitCode = needsAttention ? EXIT.needsAttention : EXIT.done
    if (json) return { data: reportView(report, action), print: () => {}, exitCode }
    const isWritten = action === 'written' || action === 'replaced'
    if (hasEntries && !shouldAsk && !isWritten) await printConfig(output, report, write)
    await print(output, (writer) => printOutcome(writer, report, action))
    return exitCode
  },
})

function checkRequest(
  table: string | undefined,
  options: Readonly<Record<string, string | undefined>>,
): void {
  const given = Object.entries(options).find(([, value]) => value !== undefined)?.[0]
  if (given && table === undefined)
    throw new UsageError(`${given} is about one table: add --table.`)
  const mistake = options['--name'] === undefined ? null : sourceMistake(options['--name'])
  if (mistake) throw new UsageError(`--name ${mistake}.`)
}

async function scanDatabase(address: string, table: string | undefined): Promise<DatabaseScan> {
  const scan = await findTables(address, table)
  if (table === undefined || scan.tables.length > 0) return scan
  const { denied } = scan
  if (denied && denied.tables.length > 0)
    throw new UsageError(
      `The login ${denied.login} may not read ${table}. To grant it: ${grantsFor(denied).join(' ')}`,
    )
  const names = (await findTables(address)).tables.map(qualifiedName)
  const hint = closest(table, names) ?? names.find((name) => name.endsWith(`.${table}`))
  const listing = `There are ${names.slice(0, 10).join(', ')}${names.length > 10 ? ' …' : ''}.`
  throw new NotFoundError(
    `table ${JSON.stringify(table)} in ${scan.location}`,
    hint ? `Did you mean ${hint}?` : names.length > 0 ? listing : 'There are no tables.',
  )
}

function findConfigTarget(address: string, { db }: Settings, isReplaced: boolean): ConfigTarget {
  const cwd = process.cwd()
  const found = findConfig(cwd)
  const path = found ?? join(cwd, configNameFor(cwd))
  return describeConfig(address, { path, exists: found !== null, db, isReplaced })
}

type EvaluateContext = {
  readonly address: string
  readonly settings: Settings
  readonly config: ConfigTarget
  readonly log: (line: string) => void
}

/** Names each proposal, and decides on its rows by the policies that would apply to them. */
async function evaluate(
  proposals: readonly Proposal[],
  wantedName: string | undefined,
  { address, settings, config, log }: EvaluateContext,
): Promise<EvaluatedProposal[]> {
  const tables = settings.section(ADOPTED_SECTION)
  const taken = new Set(tables.map(({ name }) => name))
  const evaluated: EvaluatedProposal[] = []
  for (const proposal of proposals) {
    const adopted = findAdopted(proposal.table, address, tables, config.ownAddress)
    const name = adopted?.name ?? wantedName ?? uniqueName(proposal.table, taken)
    if (!adopted && taken.has(name))
      throw new UsageError(`The config has a table named ${name} already: choose another name.`)
    taken.add(name)
    const table = adopted ?? parseProposal(name, { ...proposal.options, db: address }, settings)
    const result = await dryRun({ ...table, db: address }, settings.policyOf, log)
    evaluated.push({ proposal, name, isAdopted: adopted !== undefined, dryRun: result })
  }
  return evaluated
}

/** Parses a proposed table as the config would be. */
function parseProposal(name: string, options: AdoptedOptions, { preset }: Settings): Mapping {
  const policy = { ...DEFAULT_POLICY, ...PRESETS[preset as keyof typeof PRESETS] }
  const mistakes: string[] = []
  const defaults = { folder: process.cwd(), ownDb: undefined }
  const [table] = readAdopted({ [name]: options }, policy, defaults, mistakes)
  if (!table || mistakes.length > 0) throw new UsageError(mistakes.join('; '))
  return table
}

/** Keeps an existing config, unless `force` is given. */
function writeConfig({ entries, config }: Report, force: boolean): ConfigAction {
  const { path, exists, ownDbCode } = config
  if (exists && !force) return 'kept'
  try {
    writeFileSync(path, configText(entries, ownDbCode), { flag: force ? 'w' : 'wx' })
  } catch (error) {
    throw new UsageError(`${path} could not be written: ${messageOf(error)}`, { cause: error })
  }
  return exists ? 'replaced' : 'written'
}

async function print(output: Output, write: (writer: TextWriter) => void): Promise<void> {
  const writer = output.makeWriter()
  write(writer)
  await output.write(writer.toString())
}

async function printConfig(output: Output, report: Report, isRefused: boolean): Promise<void> {
  await print(output, (writer) => printConfigHint(writer, report.config, isRefused))
  // Code is not cut to the width of the terminal.
  const writer = output.makeWriter(Infinity)
  for (const line of codeFor(report).trimEnd().split('\n')) writer.line(line)
  await output.write(writer.toString())
}
