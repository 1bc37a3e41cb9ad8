import process from 'node:process'
import { CommanderError } from 'commander'
import { EXIT } from '../../core/model/exit-codes.ts'
import { COMMANDS, resolveCommand } from './commands.ts'
import { reportFailure, type FailureStyle } from './failure.ts'
import { COLOUR_CHOICES, onClosedStdout, type Streams } from './output.ts'
import { makeProgram } from './program.ts'

/** Runs the command line and leaves the exit code to the process. */
export async function main(argv: string[]): Promise<void> {
  onClosedStdout(false)
  try {
    process.exitCode = await runCommand(argv, process)
  } catch (error) {
    process.exitCode = reportError(error, argv, process)
    // Whatever else keeps the event loop going, a process manager's channel among them, must not keep a failure here.
    setTimeout(() => process.exit(), EXIT_GRACE_MS).unref()
  }
}

/** Parses the arguments and runs one command. Returns its exit code. */
export async function runCommand(argv: readonly string[], streams: Streams): Promise<number> {
  let exitCode: number = EXIT.done
  const program = makeProgram(COMMANDS, streams, async (command, args, flags) => {
    const { execute } = await import('./execute.ts')
    exitCode = await execute(command, args, flags, streams)
  })
  await program.parseAsync(normalizeHelp(argv), { from: 'user' })
  return exitCode
}

/** Writes an error that `runCommand` has thrown to stderr. Returns the exit code. */
export function reportError(error: unknown, argv: readonly string[], streams: Streams): number {
  return isHelp(error)
    ? helpExitCode(error)
    : reportFailure(error, failureStyleOf(argv), streams.stderr)
}

const EXIT_GRACE_MS = 1_000

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

/** Help that nobody asked for stands for a missing word, as in `unstuck journal`. */
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
