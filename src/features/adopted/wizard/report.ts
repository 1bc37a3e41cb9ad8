import { docPath } from '../../../lib/files/doc-path.ts'
import { describeOrigin } from '../../../core/model/traits.ts'
import { unstuckCommand } from '../../../core/model/shell-command.ts'
import { ACTIONS, type Action } from '../../../core/model/verdict.ts'
import type { TextWriter } from '../../../lib/terminal/text-writer.ts'
import { plural } from '../../../presenters/format.ts'
import { adoptedText, configText, type ConfigEntry, type ConfigTarget } from './config-text.ts'
import { qualifiedName } from './columns.ts'
import type { DryRun, DryRunFailure } from './dry-run.ts'
import type { DatabaseScan, DeniedTables } from './find-tables.ts'
import type { Proposal, RejectedTable } from './propose.ts'

export type EvaluatedProposal = {
  readonly proposal: Proposal
  /** In the config. */
  readonly name: string
  /** The config has it already. */
  readonly isAdopted: boolean
  readonly dryRun: DryRun | DryRunFailure
}

export type Report = {
  readonly scan: DatabaseScan
  readonly evaluated: readonly EvaluatedProposal[]
  readonly doubtful: readonly Proposal[]
  readonly rejected: readonly RejectedTable[]
  /** For the config. */
  readonly entries: readonly ConfigEntry[]
  readonly config: ConfigTarget
}

export type ConfigAction = 'written' | 'replaced' | 'kept' | 'shown'

const LISTED_MAX = 12
const GRANTS_MAX = 3

/** The data of the command. */
export function reportView(report: Report, action: ConfigAction) {
  const { scan, evaluated, doubtful, rejected, entries, config } = report
  const proposalView = ({ isSure, options, ...shown }: Proposal) => ({
    ...shown,
    sure: isSure,
    mapping: options,
  })
  const notEvaluated = { name: null, adopted: false, dryRun: null, dryRunError: null }
  return {
    database: scan.location,
    tables: scan.tables.length,
    proposals: [
      ...evaluated.map(({ proposal, name, isAdopted, dryRun }) => ({
        ...proposalView(proposal),
        name,
        adopted: isAdopted,
        dryRun: 'live' in dryRun ? dryRun : null,
        dryRunError: 'error' in dryRun ? dryRun.error : null,
      })),
      ...doubtful.map((proposal) => ({ ...proposalView(proposal), ...notEvaluated })),
    ],
    rejected: rejected.map(({ table, because }) => ({ table, because })),
    unreadable: (scan.denied?.tables ?? []).map(qualifiedName),
    config: { path: config.path, action, text: entries.length > 0 ? codeFor(report) : null },
  }
}

/** The whole config, or the part to add to an existing one. */
export function codeFor({ entries, config }: Pick<Report, 'entries' | 'config'>): string {
  return config.exists ? adoptedText(entries) : configText(entries, config.ownDbCode)
}

/** Prints what was found. `isRequested`: the user named one table. */
export function printFindings(writer: TextWriter, report: Report, isRequested: boolean): void {
  const { scan, evaluated, doubtful, rejected } = report
  const { location, tables, denied } = scan
  writer.paragraph(`${plural(tables.length, 'table')} in ${location}. Nothing there is changed.`)
  for (const one of evaluated) printProposal(writer, one)
  if (doubtful.length > 0) writer.heading('Perhaps')
  for (const { table, reasons, doubts } of doubtful)
    writer.paragraph(
      `- ${table}: ${reasons.join(', ')}; but ${doubts.join(', ')}. \`${unstuckCommand('adopt', [], { table })}\``,
    )
  printRejected(writer, rejected, isRequested)
  const hasDenied = denied !== null && denied.tables.length > 0
  if (hasDenied && !isRequested) printDenied(writer, denied)
  if (evaluated.length > 0 || (hasDenied && tables.length === 0)) return
  writer.blank()
  writer.paragraph(
    isRequested
      ? '`--status-column COLUMN` names the column with its status.'
      : 'No table looks like runs: that takes an id, a time, and a status with a value for work in progress. ' +
          '`--table NAME` examines one table.',
  )
  writer.paragraph(`To write a mapping by hand: ${docPath('guides/adopted-tables.md')}.`)
}

function printProposal(writer: TextWriter, evaluated: EvaluatedProposal): void {
  const { proposal, name, isAdopted, dryRun } = evaluated
  const { table, kind, reasons, doubts, columns, unused, statuses, notes } = proposal
  writer.heading(`${table}: each row is a ${kind === 'runs' ? 'run' : 'target'}`)
  if (isAdopted) writer.paragraph(`Already adopted as ${name}.`)
  if (reasons.length > 0) writer.paragraph(`Why: ${reasons.join(', ')}.`)
  for (const doubt of doubts) writer.paragraph({ text: 'Doubt: ', style: 'warn' }, `${doubt}.`)
  writer.table(
    [{ header: 'COLUMN' }, { header: 'IS' }, { header: 'BECAUSE', flex: true }],
    columns.map(({ field, column, because }) => [column, field, because]),
  )
  if (unused.length > 0) writer.paragraph({ text: `Not used: ${listed(unused)}`, style: 'dim' })
  writer.blank()
  writer.table(
    [{ header: 'STATUS' }, { header: 'MEANS' }, { header: 'BECAUSE', flex: true }],
    statuses.map(({ value, meaning, because }) => [String(value), meaning, because]),
  )
  if (notes.length > 0) writer.blank()
  for (const note of notes) writer.paragraph('- ', note)
  writer.blank()
  printDryRun(writer, evaluated, dryRun)
}

const ACTION_EFFECTS: Readonly<Record<Action, string>> = {
  leave: 'not changed: active or queued',
  wait: 'not changed: queued, or not known to be dead',
  alert: 'reported, not changed',
  resume: 'put back in the queue, to continue',
  replan: 'put back in the queue',
  retry: 'failed',
  park: 'parked',
  hold: 'stuck: not changed until you run `unstuck unpark`',
  fail: 'failed; what was saved is kept',
  abandon: 'dead: not changed until you run `unstuck clean`',
  resumable: 'kept: can be continued',
}

function printDryRun(
  writer: TextWriter,
  { proposal, name }: EvaluatedProposal,
  dryRun: DryRun | DryRunFailure,
): void {
  if ('error' in dryRun)
    return writer.paragraph({ text: 'Its rows cannot be assessed: ', style: 'warn' }, dryRun.error)
  const { live, actions, examples, warnings } = dryRun
  for (const warning of warnings) writer.paragraph({ text: 'Warning: ', style: 'warn' }, warning)
  if (live === 0) return writer.paragraph(`No row of ${name} is live now.`)
  const rows = plural(live, 'live row')
  writer.line({ text: `What \`unstuck recover\` would do with its ${rows} now`, style: 'strong' })
  for (const action of ACTIONS.filter((one) => actions[one] !== undefined))
    writer.paragraph(`- ${actions[action]} ${ACTION_EFFECTS[action]}`)
  for (const { row, source, action, because } of examples) {
    if (action === 'leave') continue
    const subject =
      proposal.kind === 'runs'
        ? `${source} (${describeOrigin({ table: name, key: row })})`
        : `target ${row} of ${source}`
    writer.paragraph('- ', { text: action, style: 'strong' }, ` ${subject}: ${because}.`)
  }
}

function listed(names: readonly string[], more = (n: number): string => ` and ${n} more`): string {
  const rest = names.length - LISTED_MAX
  return names.slice(0, LISTED_MAX).join(', ') + (rest > 0 ? more(rest) : '')
}

/** Tables without anything like a status are listed by name only, unless the user named one. */
function printRejected(
  writer: TextWriter,
  rejected: readonly RejectedTable[],
  isRequested: boolean,
): void {
  if (rejected.length === 0) return
  const described = rejected.filter(({ hasNoStatus }) => isRequested || !hasNoStatus)
  const named = rejected.filter((one) => !described.includes(one)).map(({ table }) => table)
  writer.heading('Rejected')
  for (const { table, because } of described.slice(0, LISTED_MAX))
    writer.paragraph(`- ${table}: ${because}.`)
  if (described.length > LISTED_MAX)
    writer.paragraph(`- and ${described.length - LISTED_MAX} more; --json lists all.`)
  if (named.length > 0)
    writer.paragraph(
      `- without a column named like a status: ${listed(named)}. ` +
        '`--table NAME` examines one table, `--status-column COLUMN` names its status.',
    )
}

function printDenied(writer: TextWriter, { login, tables }: DeniedTables): void {
  writer.blank()
  writer.paragraph(
    { text: 'Not readable: ', style: 'warn' },
    `${listed(tables.map(qualifiedName), () => ' …')}. The login ${login} lacks the right; these statements grant it:`,
  )
  for (const grant of grantsFor({ login, tables: tables.slice(0, GRANTS_MAX) }))
    writer.paragraph(`  \`${grant}\``)
}

/** The statements that let a login read these tables. */
export function grantsFor({ login, tables }: DeniedTables): string[] {
  const quote = (name: string): string =>
    /^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`
  const schemas = new Set(tables.map(({ schema }) => `USAGE ON SCHEMA ${quote(schema)}`))
  const rights = tables.map(({ schema, table }) => `SELECT ON ${quote(schema)}.${quote(table)}`)
  return [...schemas, ...rights].map((right) => `GRANT ${right} TO ${quote(login)};`)
}

/** Prints what goes into the config. `isRefused`: it was not written because there is one already. */
export function printConfigHint(
  writer: TextWriter,
  { exists, path }: ConfigTarget,
  isRefused: boolean,
): void {
  const kept = isRefused ? `${path} exists and was not changed. ` : ''
  writer.blank()
  writer.paragraph(
    exists
      ? `${kept}Add this to it, or the tables to its \`adopted\`:`
      : `\`--write\` writes this to ${path}:`,
  )
  writer.blank()
}

/** Prints what was done, and the next commands. */
export function printOutcome(writer: TextWriter, report: Report, action: ConfigAction): void {
  const { entries, evaluated, config } = report
  if (evaluated.length === 0) return
  writer.blank()
  if (entries.length === 0) return writer.paragraph(`${config.path} has all of this already.`)
  if (action === 'written' || action === 'replaced')
    writer.paragraph({ text: action, style: 'good' }, ` ${config.path}`)
  writer.line({ text: 'Next', style: 'strong' })
  if (config.variable !== null) {
    const { name, isSet } = config.variable
    writer.paragraph(
      isSet
        ? `  Set ${name} wherever Unstuck runs, as it is here: the config reads the address from it.`
        : `  Set ${name} to the address wherever Unstuck runs: the config does not contain the password.`,
    )
  }
  writer.paragraph('  `npx unstuck recover --dry-run`')
  writer.paragraph('  `npx unstuck serve`')
}
