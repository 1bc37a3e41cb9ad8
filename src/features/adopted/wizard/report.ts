import { unstuckCommand } from '../../../lib/text/shell-command.ts'
import { ACTIONS, type Action } from '../../../core/model/verdict.ts'
import type { TextWriter } from '../../../lib/terminal/text-writer.ts'
import { formatSource, plural } from '../../../presenters/format.ts'
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

export type Findings = {
  readonly scan: DatabaseScan
  readonly evaluated: readonly EvaluatedProposal[]
  readonly doubtful: readonly Proposal[]
  readonly rejected: readonly RejectedTable[]
}

const LISTED_MAX = 12
const GRANTS_MAX = 3

/** Prints what was found. `isRequested`: the user named one table. */
export function printFindings(writer: TextWriter, findings: Findings, isRequested: boolean): void {
  const { scan, evaluated, doubtful, rejected } = findings
  const { location, tables, denied } = scan
  writer.paragraph(`${plural(tables.length, 'table')} in ${location}. Nothing there is changed.`)
  for (const one of evaluated) printProposal(writer, one)
  if (doubtful.length > 0) writer.heading('Perhaps')
  for (const { table, reasons, doubts } of doubtful)
    writer.paragraph(
      `- ${table}: ${reasons.join(', ')}; but ${doubts.join(', ')}. \`${unstuckCommand('adopt', [], { table })}\``,
    )
  printRejected(writer, rejected, isRequested)
  const isAllDenied = tables.length === 0 && denied !== null && denied.tables.length > 0
  if (denied && !isRequested) printDenied(writer, denied)
  if (evaluated.length > 0 || isAllDenied) return
  writer.blank()
  writer.paragraph(
    isRequested
      ? '`--status COLUMN` names the column with its status.'
      : 'No table looks like runs: that takes an id, a time, and a status with a value for work in progress. ' +
          '`--table NAME` examines one table.',
  )
  writer.paragraph('To write a mapping by hand: docs/guides/adopted-tables.md.')
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
    statuses.map(({ value, meaning, because }) => [value, meaning, because]),
  )
  if (notes.length > 0) writer.blank()
  for (const note of notes) writer.paragraph('- ', note)
  writer.blank()
  printDryRun(writer, evaluated, dryRun)
}

const ACTION_EFFECTS: Readonly<Record<Action, string>> = {
  leave: 'not changed: active or queued',
  wait: 'not changed: no known owner, but too young to judge',
  alert: 'reported, not changed',
  resume: 'put back in the queue, to continue',
  replan: 'put back in the queue',
  retry: 'failed',
  park: 'parked',
  hold: 'held for you',
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
    return writer.paragraph({ text: 'Its rows cannot be judged: ', style: 'warn' }, dryRun.error)
  const { live, actions, examples, warnings } = dryRun
  for (const warning of warnings) writer.paragraph({ text: 'Warning: ', style: 'warn' }, warning)
  if (live === 0) return writer.paragraph(`No row of ${name} is live now.`)
  const rows = plural(live, 'live row')
  writer.line({ text: `What \`unstuck recover\` would do with its ${rows} now`, style: 'strong' })
  for (const action of ACTIONS) {
    const count = actions[action]
    if (count !== undefined) writer.paragraph(`- ${count} ${ACTION_EFFECTS[action]}`)
  }
  for (const { row, source, action, because } of examples) {
    if (action === 'leave') continue
    const subject =
      proposal.kind === 'runs'
        ? formatSource({ source, adopted: { table: name, key: row } })
        : `target ${row} of ${source}`
    writer.paragraph('- ', { text: action, style: 'strong' }, ` ${subject}: ${because}.`)
  }
}

function listed(names: readonly string[]): string {
  const rest = names.length - LISTED_MAX
  return names.slice(0, LISTED_MAX).join(', ') + (rest > 0 ? ` and ${rest} more` : '')
}

/** Tables without anything like a status are listed by name only, unless the user named one. */
function printRejected(
  writer: TextWriter,
  rejected: readonly RejectedTable[],
  isRequested: boolean,
): void {
  if (rejected.length === 0) return
  const described = rejected.filter(({ hasNoStatus }) => isRequested || !hasNoStatus)
  const withoutStatus = rejected.filter((one) => !described.includes(one)).map(({ table }) => table)
  writer.heading('Rejected')
  for (const { table, because } of described.slice(0, LISTED_MAX))
    writer.paragraph(`- ${table}: ${because}.`)
  if (described.length > LISTED_MAX)
    writer.paragraph(`- and ${described.length - LISTED_MAX} more; --json lists all.`)
  if (withoutStatus.length > 0)
    writer.paragraph(
      `- without a column named like a status: ${listed(withoutStatus)}. ` +
        '`--table NAME` examines one table, `--status COLUMN` names its status.',
    )
}

function printDenied(writer: TextWriter, { login, tables }: DeniedTables): void {
  if (tables.length === 0) return
  writer.blank()
  const names = tables.map(({ schema, table }) => `${schema}.${table}`)
  const list = `${names.slice(0, LISTED_MAX).join(', ')}${names.length > LISTED_MAX ? ' …' : ''}`
  writer.paragraph(
    { text: 'Not readable: ', style: 'warn' },
    `${list}. The login ${login} lacks the right; these statements grant it:`,
  )
  for (const grant of grantsFor({ login, tables: tables.slice(0, GRANTS_MAX) }))
    writer.paragraph(`  \`${grant}\``)
}

/** The statements that let a login read these tables. */
export function grantsFor({ login, tables }: DeniedTables): string[] {
  const to = quoteIfNeeded(login)
  const schemas = [...new Set(tables.map(({ schema }) => quoteIfNeeded(schema)))]
  return [
    ...schemas.map((schema) => `GRANT USAGE ON SCHEMA ${schema} TO ${to};`),
    ...tables.map(
      ({ schema, table }) =>
        `GRANT SELECT ON ${quoteIfNeeded(schema)}.${quoteIfNeeded(table)} TO ${to};`,
    ),
  ]
}

function quoteIfNeeded(name: string): string {
  return /^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`
}
