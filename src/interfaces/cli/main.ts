import process from 'node:process'
import { CommanderError } from 'commander'
import {
  AmbiguousIdError,
  messageOf,
  stackOf,
  UnstuckError,
  UsageError,
} from '../../core/model/errors.ts'
import { EXIT, exitCodeOf } from '../../core/model/exit-codes.ts'
import { redact } from '../../core/model/redact.ts'
import { TextWriter } from '../../lib/terminal/text-writer.ts'
import { shellWord } from '../../core/model/shell-command.ts'
import { safeJson } from '../../lib/text/safe-text.ts'
import { COMMANDS, resolveCommand } from './commands.ts'
import {
  COLOUR_CHOICES,
  onClosedStdout,
  hasColour,
  columnsOf,
  type Streams,
  type ColourChoice,
} from './output.ts'
import { makeProgram } from './program.ts'

/** Runs the command line and leaves the exit code to the process. */
export async function main(argv: string[]): Promise<void> {
  onClosedStdout(false)
  try {
    process.exitCode = await runCli(argv, process)
    if (isCompletion(argv)) process.exit()
  } catch (error) {
    process.exitCode = reportError(error, argv, process)
    // Whatever else keeps the event loop going, a process manager's channel among them, must not keep a failure here.
    setTimeout(() => process.exit(), EXIT_GRACE_MS).unref()
  }
}

/** Parses the arguments and runs one command. Returns its exit code. */
export async function runCli(argv: readonly string[], streams: Streams): Promise<number> {
  if (isCompletion(argv)) {
    const { printCompletion } = await import('./completion/complete.ts')
    await printCompletion(argv.slice(1), streams)
    return EXIT.done
  }
  let exitCode: number = EXIT.done
  const program = makeProgram(COMMANDS, streams, async (command, args, flags) => {
    const { execute } = await import('./execute.ts')
    exitCode = await execute(command, args, flags, streams)
  })
  await program.parseAsync(normalizeHelp(argv), { from: 'user' })
  return exitCode
}

/** Writes an error that `runCli` has thrown to stderr. Returns the exit code. */
export function reportError(error: unknown, argv: readonly string[], streams: Streams): number {
  return isHelp(error)
    ? helpExitCode(error)
    : reportFailure(asCalled(error, argv), failureStyleOf(argv), streams.stderr)
}

/** The commands that an error names for an ambiguous id have the flags of the one that failed. */
function asCalled(error: unknown, argv: readonly string[]): unknown {
  if (!(error instanceof AmbiguousIdError)) return error
  const { id } = error
  const asFlag = argv.findIndex(
    (word, i) => word === `--run=${id}` || (word === id && argv[i - 1] === '--run'),
  )
  const given = asFlag === -1 ? argv.indexOf(id) : asFlag
  if (given === -1) return error
  const commandFor = (name: string): string => {
    const words = argv.with(given, argv[given] === id ? name : `--run=${name}`)
    return ['unstuck', ...words.map(shellWord)].join(' ')
  }
  return new UsageError(error.describe(commandFor), { cause: error })
}

const EXIT_GRACE_MS = 1_000

/** `unstuck complete SHELL -- …` of a completion script: no command of its own, since it has no error and no flags. */
function isCompletion(argv: readonly string[]): boolean {
  return argv[0] === 'complete' && argv[2] === '--'
}

/** `unstuck` alone asks for help, and so does `unstuck help show`. */
function normalizeHelp(argv: readonly string[]): string[] {
  if (argv.length === 0) return ['--help']
  return argv[0] === 'help' ? [...argv.slice(1), '--help'] : [...argv]
}

/** Help and version end by an exception too, after they were printed. */
function isHelp(error: unknown): error is CommanderError {
  return (
    error instanceof CommanderError && (error.exitCode === 0 || error.code === 'commander.help')
  )
}

/** Help that was not requested stands for a missing word, as in `unstuck journal`. */
function helpExitCode(error: CommanderError): number {
  return error.exitCode === 0 ? EXIT.done : EXIT.usage
}

/** Read by hand: an error in the arguments must be reported in the way these same arguments ask for. */
function failureStyleOf(argv: readonly string[]): FailureStyle {
  const end = argv.indexOf('--')
  const own = end === -1 ? argv : argv.slice(0, end)
  const chosen =
    own.findLast((_, i) => own[i - 1] === '--color') ??
    own.findLast((arg) => arg.startsWith('--color='))
  return {
    json: own.includes('--json'),
    debug: own.includes('--debug'),
    colour: COLOUR_CHOICES.find((choice) => chosen?.endsWith(choice)) ?? 'auto',
    help: ['unstuck', ...resolveCommand(own), '--help'].join(' '),
  }
}

type FailureStyle = {
  readonly json: boolean
  readonly debug: boolean
  readonly colour: ColourChoice
  /** The command that explains how to call the one that failed. */
  readonly help: string
}

type Failure = { readonly code: string; readonly exitCode: number; readonly message: string }

/** Writes to stderr what happened, why, and what to do. Returns the exit code. Secrets are redacted before. */
function reportFailure(error: unknown, style: FailureStyle, stderr: NodeJS.WriteStream): number {
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
  'Secrets are not given by flags, which every user of this machine can read while the command runs: ' +
  'set UNSTUCK_ADMIN_TOKEN or UNSTUCK_DB, and take those of channels from the environment in the config. Change the one that was written here.'

/** Commander speaks in fragments: "error: unknown option '--jsn'\n(Did you mean --json?)". */
function usageMessage(message: string): string {
  const [text = '', hint] = message.replace(/^error: /, '').split('\n')
  // What was given to an option that is not there may be a secret.
  const what = text.replace(/^(unknown option '[^=]*)=.*'$/, "$1'")
  if (SECRET_OPTION.test(what)) return `Unknown option. ${SECRET_OPTION_HINT}`
  const sentence = what.charAt(0).toUpperCase() + what.slice(1).replace(/\.$/, '')
  return hint ? `${sentence}. ${hint.replace(/^\(|\)$/g, '')}` : `${sentence}.`
}
