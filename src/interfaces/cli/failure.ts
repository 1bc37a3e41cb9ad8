import { CommanderError } from 'commander'
import { messageOf, stackOf, UnstuckError } from '../../core/model/errors.ts'
import { EXIT, exitCodeOf } from '../../core/model/exit-codes.ts'
import { redact } from '../../core/model/redact.ts'
import { safeJson } from '../../lib/text/safe-text.ts'
import { hasColour, columnsOf, type ColourChoice } from './output.ts'
import { TextWriter } from '../../lib/terminal/text-writer.ts'

export type FailureStyle = {
  readonly json: boolean
  readonly debug: boolean
  readonly colour: ColourChoice
  /** The command that explains how to call the one that failed. */
  readonly help: string
}

type Failure = { readonly code: string; readonly exitCode: number; readonly message: string }

/** Writes to stderr what happened, why, and what to do. Returns the exit code. Secrets are redacted before. */
export function reportFailure(
  error: unknown,
  style: FailureStyle,
  stderr: NodeJS.WriteStream,
): number {
  const { code, exitCode, message } = toFailure(error, style.help)
  const stack = style.debug && error instanceof Error ? redact(stackOf(error)) : null
  if (style.json) {
    const details = stack === null ? { code, message } : { code, message, stack }
    stderr.write(`${safeJson({ error: details })}\n`)
  } else {
    const writer = new TextWriter(columnsOf(stderr), hasColour(style.colour, stderr))
    stderr.write(formatFailure(writer, code, message, stack))
  }
  return exitCode
}

function formatFailure(
  writer: TextWriter,
  code: string,
  message: string,
  stack: string | null,
): string {
  const [first = '', ...more] = message.split('\n')
  writer.paragraph({ text: 'Error', style: 'bad' }, ` ${code}: ${first}`)
  for (const line of more) writer.paragraph(line)
  if (stack !== null)
    for (const line of stack.split('\n')) writer.paragraph({ text: line, style: 'dim' })
  return writer.toString()
}

function toFailure(error: unknown, help: string): Failure {
  if (error instanceof UnstuckError) {
    return { code: error.code, exitCode: exitCodeOf(error), message: redact(error.message) }
  }
  if (error instanceof CommanderError) {
    const message = `${redact(usageMessage(error.message))} See \`${help}\`.`
    return { code: 'E_USAGE', exitCode: EXIT.usage, message }
  }
  const message = `${redact(messageOf(error))}\nThis was not expected. Run it again with --debug to see where it happened.`
  return { code: 'E_UNEXPECTED', exitCode: EXIT.failed, message }
}

const SECRET_OPTION = /^unknown option '-.*(token|secret|password|passwd|smtp|webhook)/i
const SECRET_OPTION_HINT =
  'Secrets are not given by flags, which everybody on this machine can read while the command runs: ' +
  'set UNSTUCK_ADMIN_TOKEN or UNSTUCK_DB, and take those of channels from the environment in the config. Change the one that was written here.'

/** Commander speaks in fragments: "error: unknown option '--jsn'\n(Did you mean --json?)". */
function usageMessage(message: string): string {
  const [said = '', hint] = message.replace(/^error: /, '').split('\n')
  // What was given to an option that is not there may be a secret.
  const what = said.replace(/^(unknown option '[^=]*)=.*'$/, "$1'")
  if (SECRET_OPTION.test(what)) return `Unknown option. ${SECRET_OPTION_HINT}`
  const sentence = what.charAt(0).toUpperCase() + what.slice(1).replace(/\.$/, '')
  return hint ? `${sentence}. ${hint.replace(/^\(|\)$/g, '')}` : `${sentence}.`
}
