import type { Settings } from '../../app/config.ts'
import type { Database } from '../../app/open-database.ts'
import type {
  Argument,
  ArgumentValues,
  Arguments,
  Option,
  Options,
  OptionValues,
} from './option.ts'
import type { Output } from './output.ts'
import type { TextWriter } from '../../lib/terminal/text-writer.ts'

/**
 * One command, one file. `execute.ts` parses, opens the store, prints, and maps errors to exit codes. Name and summary
 * are in `command-list.ts`, so that `--help` does not load this file.
 */
export type Command<A extends Arguments = Arguments, O extends Options = Options> = {
  /** The help starts with them. What follows two spaces and a `#` explains. */
  readonly examples: readonly string[]
  readonly args?: A
  readonly options?: O
  /** `run` can be asked again and again: the command gets `--watch`. */
  readonly watch?: true
  /** Goes on when nobody reads its output any more: work does not end because of a closed pipe. */
  readonly ignoresClosedPipe?: true
  /** From the last argument on, options are those of another program. */
  readonly passThrough?: true
  /** Answers what to print, or prints a stream through `context.output` and answers an exit code. */
  run(context: CliContext<A, O>): Promise<CommandResult | number | void>
}

export type CliContext<A extends Arguments = Arguments, O extends Options = Options> = {
  readonly args: ArgumentValues<A>
  readonly options: OptionValues<O>
  readonly json: boolean
  readonly database: Database
  /** `unstuck.config.ts`, read when first asked for. */
  readonly settings: () => Promise<Settings>
  readonly output: Output
}

/** The data is a promise to scripts (docs/reference/json-output.md), the text is for people. */
export type CommandResult = {
  readonly data: unknown
  readonly print: (writer: TextWriter) => void
  readonly exitCode?: number
}

/** Types flow from what is written: `options.limit` is a number because its option says so. */
export function defineCommand<
  const A extends Record<string, Argument<any>> = {},
  const O extends Record<string, Option<any>> = {},
>(command: Command<A, O>): Command<A, O> {
  return command
}
