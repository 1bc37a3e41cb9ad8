import type { Barred } from '../../../features/adopted/wizard/find-tables.ts'
import type { PassedOver, Proposal } from '../../../features/adopted/wizard/propose.ts'
import { ACTIONS, type Action } from '../../../core/model/verdict.ts'
import { unstuckCommand } from '../../../core/model/shell-command.ts'
import type { Paper } from '../../../lib/terminal/text-writer.ts'
import { plural, sourceOf } from '../../../presenters/format.ts'
import type { NoOutlook, Outlook } from './dry-run.ts'

/** What of a proposal a person reads. */
export type Shown = {
  readonly proposal: Proposal
  readonly name: string
  /** The name that the config has for it already. */
  readonly adopted: string | null
  readonly outlook: Outlook | NoOutlook | null
}

export function printProposal(paper: Paper, { proposal, name, adopted, outlook }: Shown): void {
  const { table, kind, signs, doubts, columns, unused, words, notes } = proposal
  const what = kind === 'runs' ? 'each row is a run' : 'each row is a target'
  paper.heading(`${table}: ${what}`)
  if (adopted !== null) paper.say(`Adopted already, as ${adopted}.`)
  if (signs.length > 0) paper.say(`Why: ${signs.join(', ')}.`)
  for (const doubt of doubts) paper.say({ text: 'Doubt: ', ink: 'warn' }, `${doubt}.`)
  paper.table(
    [{ head: 'COLUMN' }, { head: 'IS' }, { head: 'BECAUSE', flex: true }],
    columns.map(({ field, column, because }) => [column, field, because]),
  )
  if (unused.length > 0) paper.say({ text: `Not used: ${listed(unused)}`, ink: 'dim' })
  paper.blank()
  paper.table(
    [{ head: 'WORD' }, { head: 'MEANS' }, { head: 'BECAUSE', flex: true }],
    words.map(({ word, meaning, because }) => [word, meaning, because]),
  )
  if (notes.length > 0) paper.blank()
  for (const note of notes) paper.say('- ', note)
  if (outlook) printOutlook(paper, { name, kind }, outlook)
}

const DEEDS: Readonly<Record<Action, string>> = {
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

function printOutlook(
  paper: Paper,
  { name, kind }: Pick<Proposal, 'kind'> & Pick<Shown, 'name'>,
  outlook: Outlook | NoOutlook,
): void {
  paper.blank()
  if ('trouble' in outlook) {
    paper.say({ text: 'It cannot be judged yet: ', ink: 'warn' }, outlook.trouble)
    return
  }
  const { live, actions, examples, remarks } = outlook
  for (const remark of remarks) paper.say({ text: 'Mind: ', ink: 'warn' }, remark)
  if (live === 0) return paper.say(`Now nothing of ${name} is live: there is nothing to judge.`)
  paper.line({
    text: `What \`unstuck recover\` would make of its ${plural(live, 'live row')} now`,
    ink: 'strong',
  })
  for (const action of ACTIONS) {
    const count = actions[action]
    if (count !== undefined) paper.say(`- ${count} ${DEEDS[action]}`)
  }
  const shown = examples.filter(({ action }) => action !== 'leave')
  for (const { row, source, action, because } of shown) {
    const what =
      kind === 'runs'
        ? sourceOf({ source, adopted: { table: name, key: row } })
        : `target ${row} of ${source}`
    paper.say('- ', { text: action, ink: 'strong' }, ` ${what}: ${because}.`)
  }
}

const PASSED_MAX = 12

function listed(names: readonly string[]): string {
  const rest = names.length - PASSED_MAX
  return names.slice(0, PASSED_MAX).join(', ') + (rest > 0 ? ` and ${rest} more` : '')
}

/** Unless it was asked for by name, a table without anything like a status gets its name said, and no more. */
export function printPassedOver(
  paper: Paper,
  passed: readonly PassedOver[],
  isAsked: boolean,
): void {
  const told = passed.filter(({ isFar }) => isAsked || !isFar)
  const far = passed.filter((one) => !told.includes(one)).map(({ table }) => table)
  if (passed.length === 0) return
  paper.heading('Not taken for runs')
  for (const { table, because } of told.slice(0, PASSED_MAX)) paper.say(`- ${table}: ${because}.`)
  if (told.length > PASSED_MAX) paper.say(`- and ${told.length - PASSED_MAX} more; --json has all.`)
  if (far.length > 0)
    paper.say(
      `- without a column like a status: ${listed(far)}. ` +
        '`--table NAME` looks at one more closely, `--status COLUMN` says where its words are.',
    )
}

/** What the login may not see is not judged: which right is missing, and what gives it. */
export function printBarred(paper: Paper, { login, tables }: Barred, isAll: boolean): void {
  if (tables.length === 0) return
  paper.blank()
  const names = tables.map(({ schema, table }) => `${schema}.${table}`)
  const list = `${names.slice(0, PASSED_MAX).join(', ')}${names.length > PASSED_MAX ? ' …' : ''}`
  paper.say(
    { text: isAll ? 'May not be read: ' : 'May not be read, and was not looked at: ', ink: 'warn' },
    `${list}. The login ${login} lacks the right. What gives it:`,
  )
  for (const grant of grantsFor({ login, tables: tables.slice(0, GRANTS_MAX) }))
    paper.say(`  \`${grant}\``)
}

const GRANTS_MAX = 3

/** The statements that let a login read these tables. */
export function grantsFor({ login, tables }: Barred): string[] {
  const schemas = [...new Set(tables.map(({ schema }) => schema))]
  return [
    ...schemas.map((schema) => `GRANT USAGE ON SCHEMA ${quoted(schema)} TO ${quoted(login)};`),
    ...tables.map(
      ({ schema, table }) =>
        `GRANT SELECT ON ${quoted(schema)}.${quoted(table)} TO ${quoted(login)};`,
    ),
  ]
}

/** As an identifier that a person can paste; plain ones without the quotes. */
function quoted(name: string): string {
  return /^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`
}

export function printDoubtful(paper: Paper, doubtful: readonly Proposal[]): void {
  if (doubtful.length === 0) return
  paper.heading('Perhaps')
  for (const { table, signs, doubts } of doubtful)
    paper.say(
      `- ${table}: ${signs.join(', ')}; but ${doubts.join(', ')}. \`${unstuckCommand('adopt', [], { table })}\``,
    )
}
