import type { Style } from '../../../lib/text/sentence.ts'
import type { TextWriter } from '../../../lib/terminal/text-writer.ts'
import { plural } from '../../../presenters/format.ts'
import { worst, type Finding, type Result } from '../../../presenters/finding.ts'

const RESULT_STYLE: Record<Result, Style> = {
  ok: 'good',
  note: 'dim',
  warning: 'warn',
  problem: 'bad',
}

/** Prints one line per check, then an explanation of each that is not `ok`. */
export function printFindings(writer: TextWriter, findings: readonly Finding[]): void {
  writer.paragraph({ text: summarize(findings), style: RESULT_STYLE[worst(findings)] })
  writer.blank()
  writer.table(
    [{ header: 'RESULT' }, { header: 'CHECK' }, { header: 'FOUND', flex: true }],
    findings.map(({ result, check, found }) => [
      { text: result, style: RESULT_STYLE[result] },
      check,
      found,
    ]),
  )
  for (const finding of findings) if (finding.result !== 'ok') explain(writer, finding)
}

function explain(writer: TextWriter, { result, check, found, details, why, fix }: Finding): void {
  writer.heading(`${check} (${result})`)
  writer.paragraph(found)
  for (const detail of details) writer.paragraph(`- ${detail}`)
  if (why !== null) writer.paragraph(`Why it matters: ${why}`)
  if (fix !== null) writer.paragraph(`What to do: ${fix}`)
}

export function summarize(findings: readonly Finding[]): string {
  const count = (result: Result): number => findings.filter((one) => one.result === result).length
  const parts = [
    count('problem') > 0 && plural(count('problem'), 'problem'),
    count('warning') > 0 && plural(count('warning'), 'warning'),
    count('note') > 0 && plural(count('note'), 'note'),
  ].filter(Boolean)
  const checks = plural(findings.length, 'check')
  return parts.length === 0 ? `All is well: ${checks}.` : `${checks}: ${parts.join(', ')}.`
}
