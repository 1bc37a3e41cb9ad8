import process from 'node:process'
import { CommanderError } from 'commander'
import { EXIT, messageOf, stackOf, UnstuckError } from '../../core/model/errors.ts'
import { redact } from '../../core/model/redact.ts'
import { safeJson } from '../../core/events/safe-text.ts'
import { coloured, columnsOf, type ColourChoice } from './output.ts'
import { Paper } from '../../lib/terminal/text-writer.ts'

export type FailureStyle = {
  readonly json: boolean
  readonly debug: boolean
  readonly colour: ColourChoice
  /** The command that explains how to call the one that failed. */
  readonly help: string
}

type Failure = { readonly code: string; readonly exitCode: number; readonly message: string }

/** Says on stderr what happened, why, and what to do; answers the exit code. Secrets never get this far. */
export function reportFailure(error: unknown, style: FailureStyle): number {
  const { code, exitCode, message } = understand(error, style.help)
  const stack = style.debug && error instanceof Error ? redact(stackOf(error)) : null
  if (style.json) {
    const details = stack === null ? { code, message } : { code, message, stack }
    process.stderr.write(`${safeJson({ error: details })}\n`)
  } else {
    process.stderr.write(inWords(code, message, stack, style.colour))
  }
  return exitCode
}

function inWords(
  code: string,
  message: string,
  stack: string | null,
  colour: ColourChoice,
): string {
  const paper = new Paper(columnsOf(process.stderr), coloured(colour, process.stderr))
  const [first = '', ...more] = message.split('\n')
  paper.say({ text: 'Error', ink: 'bad' }, ` ${code}: ${first}`)
  for (const line of more) paper.say(line)
  if (stack !== null) for (const line of stack.split('\n')) paper.say({ text: line, ink: 'dim' })
  return paper.toString()
}

function understand(error: unknown, help: string): Failure {
  if (error instanceof UnstuckError) {
    return { code: error.code, exitCode: error.exitCode, message: redact(error.message) }
  }
  if (error instanceof CommanderError) {
    const message = `${redact(usageMessage(error.message))} See \`${help}\`.`
    return { code: 'E_USAGE', exitCode: EXIT.usage, message }
  }
  const message = `${redact(messageOf(error))}\nThis was not expected. Run it again with --debug to see where it happened.`
  return { code: 'E_UNEXPECTED', exitCode: EXIT.failed, message }
}

const SECRET_OPTION = /^unknown option '-.*(token|secret|password|passwd|smtp|webhook)/i
const NOT_BY_FLAG =
  'Secrets are not given by flags, which everybody on this machine can read while the command runs: ' +
  'set UNSTUCK_ADMIN_TOKEN or UNSTUCK_DB, and take those of channels from the environment in the config. Change the one that was written here.'

/** Commander speaks in fragments: "error: unknown option '--jsn'\n(Did you mean --json?)". */
function usageMessage(message: string): string {
  const [said = '', hint] = message.replace(/^error: /, '').split('\n')
  // What was given to an option that is not there may be a secret.
  const what = said.replace(/^(unknown option '[^=]*)=.*'$/, "$1'")
  if (SECRET_OPTION.test(what)) return `Unknown option. ${NOT_BY_FLAG}`
  const sentence = what.charAt(0).toUpperCase() + what.slice(1).replace(/\.$/, '')
  return hint ? `${sentence}. ${hint.replace(/^\(|\)$/g, '')}` : `${sentence}.`
}
