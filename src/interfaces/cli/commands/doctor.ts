import process from 'node:process'
import { defineCommand } from '../../../contracts/command.ts'
import { option } from '../../../contracts/options.ts'
import { redact } from '../../../core/model/redact.ts'
import type { TextWriter } from '../../../lib/terminal/text-writer.ts'
import type { Style } from '../../../lib/text/sentence.ts'
import { exitCodeOf, worst, type Finding, type Result } from '../../../contracts/finding.ts'
import { plural } from '../../../presenters/format.ts'
import { runChecks } from '../doctor/run-checks.ts'
import { checkSecurity } from '../doctor/security.ts'

export const command = defineCommand({
  examples: [
    'unstuck doctor',
    'unstuck doctor --db postgres://…  # that database, not the one of the config',
    'unstuck doctor --security  # which users could read or change the data',
    'unstuck doctor --json | jq \'.checks[] | select(.result != "ok")\'',
  ],
  options: {
    security: option.flag('check files, tokens, TLS and secrets of this set-up instead'),
  },

  async run({ database, options }) {
    const check = options.security ? checkSecurity : runChecks
    const findings = (await check(database, process.cwd())).map(withoutSecrets)
    return {
      data: { result: worst(findings), summary: summarize(findings), checks: findings.map(view) },
      print: (writer) => printFindings(writer, findings),
      exitCode: exitCodeOf(findings),
    }
  },
})

function view({ check, result, found, details, why, fix }: Finding) {
  return { check, result, found, details, why, fix }
}

/** Messages of other programs may repeat an address with its password. */
function withoutSecrets(finding: Finding): Finding {
  const { found, details, why, fix } = finding
  return {
    ...finding,
    found: redact(found),
    details: details.map(redact),
    why: why && redact(why),
    fix: fix && redact(fix),
  }
}

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
