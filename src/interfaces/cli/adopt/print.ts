import type { DeniedTables } from '../../../features/adopted/wizard/find-tables.ts'
import type { RejectedTable, Proposal } from '../../../features/adopted/wizard/propose.ts'
import { ACTIONS, type Action } from '../../../core/model/verdict.ts'
import { unstuckCommand } from '../../../core/model/shell-command.ts'
import type { TextWriter } from '../../../lib/terminal/text-writer.ts'
import { plural, formatSource } from '../../../presenters/format.ts'
import type { DryRunFailure, DryRunResult } from './dry-run.ts'

/** What of a proposal a person reads. */
export type EvaluatedProposal = {
  readonly proposal: Proposal
  readonly name: string
  /** The name that the config has for it already. */
  readonly adopted: string | null
  readonly dryRun: DryRunResult | DryRunFailure | null
}

export function printProposal(
  writer: TextWriter,
  { proposal, name, adopted, dryRun }: EvaluatedProposal,
): void {
  const { table, kind, signs, doubts, columns, unused, statuses, notes } = proposal
  const what = kind === 'runs' ? 'each row is a run' : 'each row is a target'
  writer.heading(`${table}: ${what}`)
  if (adopted !== null) writer.paragraph(`Adopted already, as ${adopted}.`)
  if (signs.length > 0) writer.paragraph(`Why: ${signs.join(', ')}.`)
  for (const doubt of doubts) writer.paragraph({ text: 'Doubt: ', style: 'warn' }, `${doubt}.`)
  writer.table(
    [{ header: 'COLUMN' }, { header: 'IS' }, { header: 'BECAUSE', flex: true }],
    columns.map(({ field, column, because }) => [column, field, because]),
  )
  if (unused.length > 0) writer.paragraph({ text: `Not used: ${listed(unused)}`, style: 'dim' })
  writer.blank()
  writer.table(
    [{ header: 'WORD' }, { header: 'MEANS' }, { header: 'BECAUSE', flex: true }],
    statuses.map(({ word, meaning, because }) => [word, meaning, because]),
  )
  if (notes.length > 0) writer.blank()
  for (const note of notes) writer.paragraph('- ', note)
  if (dryRun) printDryRun(writer, { name, kind }, dryRun)
}

const ACTION_EFFECTS: Readonly<Record<Action, string>> = {
  leave: 'left alone: at work, or in line',
  wait: 'left alone: too young to judge without an owner',
  alert: 'told to you, and left alone',
  resume: 'put back in line, to go on',
  replan: 'put back in line',
  retry: 'failed',
  park: 'set aside',
  hold: 'held for you',
  fail: 'failed; what was saved is kept',
  abandon: 'dead: left alone until you say `unstuck clean`',
  resumable: 'kept: there is something to go on from',
}

function printDryRun(
  writer: TextWriter,
  { name, kind }: Pick<Proposal, 'kind'> & Pick<EvaluatedProposal, 'name'>,
  dryRun: DryRunResult | DryRunFailure,
): void {
  writer.blank()
  if ('trouble' in dryRun) {
    writer.paragraph({ text: 'It cannot be judged yet: ', style: 'warn' }, dryRun.trouble)
    return
  }
  const { live, actions, examples, remarks } = dryRun
  for (const remark of remarks) writer.paragraph({ text: 'Mind: ', style: 'warn' }, remark)
  if (live === 0)
    return writer.paragraph(`Now nothing of ${name} is live: there is nothing to judge.`)
  writer.line({
    text: `What \`unstuck recover\` would make of its ${plural(live, 'live row')} now`,
    style: 'strong',
  })
  for (const action of ACTIONS) {
    const count = actions[action]
    if (count !== undefined) writer.paragraph(`- ${count} ${ACTION_EFFECTS[action]}`)
  }
  const shown = examples.filter(({ action }) => action !== 'leave')
  for (const { row, source, action, because } of shown) {
    const what =
      kind === 'runs'
        ? formatSource({ source, adopted: { table: name, key: row } })
        : `target ${row} of ${source}`
    writer.paragraph('- ', { text: action, style: 'strong' }, ` ${what}: ${because}.`)
  }
}

const LISTED_MAX = 12

function listed(names: readonly string[]): string {
  const rest = names.length - LISTED_MAX
  return names.slice(0, LISTED_MAX).join(', ') + (rest > 0 ? ` and ${rest} more` : '')
}

/** Unless it was asked for by name, a table without anything like a status gets its name said, and no more. */
export function printRejected(
  writer: TextWriter,
  rejected: readonly RejectedTable[],
  isRequested: boolean,
): void {
  const described = rejected.filter(({ hasNoStatus }) => isRequested || !hasNoStatus)
  const withoutStatus = rejected.filter((one) => !described.includes(one)).map(({ table }) => table)
  if (rejected.length === 0) return
  writer.heading('Not taken for runs')
  for (const { table, because } of described.slice(0, LISTED_MAX))
    writer.paragraph(`- ${table}: ${because}.`)
  if (described.length > LISTED_MAX)
    writer.paragraph(`- and ${described.length - LISTED_MAX} more; --json has all.`)
  if (withoutStatus.length > 0)
    writer.paragraph(
      `- without a column like a status: ${listed(withoutStatus)}. ` +
        '`--table NAME` looks at one more closely, `--status COLUMN` says where its words are.',
    )
}

/** What the login may not see is not judged: which right is missing, and what gives it. */
export function printDenied(
  writer: TextWriter,
  { login, tables }: DeniedTables,
  isAll: boolean,
): void {
  if (tables.length === 0) return
  writer.blank()
  const names = tables.map(({ schema, table }) => `${schema}.${table}`)
  const list = `${names.slice(0, LISTED_MAX).join(', ')}${names.length > LISTED_MAX ? ' …' : ''}`
  writer.paragraph(
    {
      text: isAll ? 'May not be read: ' : 'May not be read, and was not looked at: ',
      style: 'warn',
    },
    `${list}. The login ${login} lacks the right. What gives it:`,
  )
  for (const grant of grantsFor({ login, tables: tables.slice(0, GRANTS_MAX) }))
    writer.paragraph(`  \`${grant}\``)
}

const GRANTS_MAX = 3

/** The statements that let a login read these tables. */
export function grantsFor({ login, tables }: DeniedTables): string[] {
  const schemas = [...new Set(tables.map(({ schema }) => schema))]
  return [
    ...schemas.map(
      (schema) => `GRANT USAGE ON SCHEMA ${quoteIfNeeded(schema)} TO ${quoteIfNeeded(login)};`,
    ),
    ...tables.map(
      ({ schema, table }) =>
        `GRANT SELECT ON ${quoteIfNeeded(schema)}.${quoteIfNeeded(table)} TO ${quoteIfNeeded(login)};`,
    ),
  ]
}

/** As an identifier that a person can paste; plain ones without the quotes. */
function quoteIfNeeded(name: string): string {
  return /^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`
}

export function printDoubtful(writer: TextWriter, doubtful: readonly Proposal[]): void {
  if (doubtful.length === 0) return
  writer.heading('Perhaps')
  for (const { table, signs, doubts } of doubtful)
    writer.paragraph(
      `- ${table}: ${signs.join(', ')}; but ${doubts.join(', ')}. \`${unstuckCommand('adopt', [], { table })}\``,
    )
}
