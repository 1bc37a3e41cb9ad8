import process from 'node:process'
import { redact } from '../../../core/model/redact.ts'
import { runChecks } from '../doctor/run-checks.ts'
import { exitCodeOf, worst, type Finding } from '../../../presenters/finding.ts'
import { checkSecurity } from '../doctor/security.ts'
import { printFindings, summarize } from '../doctor/text.ts'
import { defineCommand } from '../../../contracts/command.ts'
import { option } from '../../../contracts/options.ts'

export const command = defineCommand({
  examples: [
    'unstuck doctor',
    'unstuck doctor --db postgres://…  # that database, whatever the config says',
    'unstuck doctor --security  # who could read or change what',
    'unstuck doctor --json | jq \'.checks[] | select(.result != "ok")\'',
  ],
  options: {
    security: option.flag('look at files, tokens, TLS and secrets of this set-up instead'),
  },

  async run({ database, options }) {
    const look = options.security ? checkSecurity : runChecks
    const findings = (await look(database, process.cwd())).map(withoutSecrets)
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
