import type { Ink } from '../../../lib/terminal/table.ts'
import type { Paper } from '../../../lib/terminal/text-writer.ts'
import { plural } from '../../../presenters/format.ts'
import { worst, type Finding, type Result } from './finding.ts'

const INK: Record<Result, Ink> = { ok: 'good', note: 'dim', warning: 'warn', problem: 'bad' }

/** One line for each check; what is not well is explained below. */
export function printFindings(paper: Paper, findings: readonly Finding[]): void {
  paper.say({ text: summarise(findings), ink: INK[worst(findings)] })
  paper.blank()
  paper.table(
    [{ head: 'RESULT' }, { head: 'CHECK' }, { head: 'FOUND', flex: true }],
    findings.map(({ result, check, found }) => [{ text: result, ink: INK[result] }, check, found]),
  )
  for (const finding of findings) if (finding.result !== 'ok') explain(paper, finding)
}

function explain(paper: Paper, { result, check, found, details, why, mend }: Finding): void {
  paper.heading(`${check} (${result})`)
  paper.say(found)
  for (const detail of details) paper.say(`- ${detail}`)
  if (why !== null) paper.say(`Why it matters: ${why}`)
  if (mend !== null) paper.say(`What to do: ${mend}`)
}

/** In one line, as `status` does. */
export function summarise(findings: readonly Finding[]): string {
  const count = (result: Result): number => findings.filter((one) => one.result === result).length
  const parts = [
    count('problem') > 0 && plural(count('problem'), 'problem'),
    count('warning') > 0 && plural(count('warning'), 'warning'),
    count('note') > 0 && plural(count('note'), 'note'),
  ].filter(Boolean)
  const checks = plural(findings.length, 'check')
  return parts.length === 0 ? `All is well: ${checks}.` : `${checks}: ${parts.join(', ')}.`
}
