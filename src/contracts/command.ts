import { EXIT } from '../core/model/exit-codes.ts'
import type { WorkerId } from '../core/model/id.ts'
import type { OperatorContext } from '../core/recovery/context.ts'
import type { Store } from '../core/store/store.ts'
import type { ActionResult } from '../presenters/action-result.ts'
import { toJson, type Presented, type PresentedList } from '../presenters/presented.ts'
import type { TextWriter } from '../lib/terminal/text-writer.ts'
import type { Database } from './database.ts'
import type {
  Argument,
  ArgumentValues,
  Arguments,
  Option,
  Options,
  OptionValues,
} from './options.ts'
import type { Settings } from './settings.ts'

/** A command in a list of commands: what `--help` prints. Its file is loaded when the command is called. */
export type CommandEntry = {
  readonly name: string
  readonly summary: string
  /** The heading above it in the help. */
  readonly group?: string
} & (
  | { readonly load: () => Promise<{ readonly command: Command<any, any> }> }
  | { readonly commands: readonly CommandEntry[] }
)

/**
 * A command. Its name and summary are in its entry, so that `--help` does not load the file; the command
 * line parses, opens the store, prints, and maps errors to exit codes.
 */
export type Command<A extends Arguments = Arguments, O extends Options = Options> = {
  /** The first part of the help. A comment follows two spaces and a `#`. */
  readonly examples: readonly string[]
  readonly args?: A
  readonly options?: O
  /** `run` can be repeated: the command gets `--watch`. */
  readonly watch?: true
  /** Continues when its output is closed: a closed pipe does not end work. */
  readonly ignoresClosedPipe?: true
  /** From the last argument on, options belong to another program. */
  readonly passThrough?: true
  /** Returns what to print, or writes a stream to `context.output` and returns an exit code. */
  run(context: CliContext<A, O>): Promise<CommandResult | number | void>
}

export type CliContext<A extends Arguments = Arguments, O extends Options = Options> = {
  readonly args: ArgumentValues<A>
  readonly options: OptionValues<O>
  readonly json: boolean
  readonly database: Database
  /** `unstuck.config.ts`, loaded on first use. */
  readonly settings: () => Promise<Settings>
  /** Opens the database for this user, with the policies of the config. Throws if nothing has run yet. */
  readonly openContext: () => Promise<OperatorContext>
  /** The same; null if nothing has run yet. */
  readonly openContextIfExists: () => Promise<OperatorContext | null>
  readonly output: Output
  /** Starts the background services that features add to a process that works. */
  startServices(
    log: (line: string) => void,
    worker: () => WorkerId | null,
  ): Promise<{ finish(): Promise<void>; stop(): Promise<void> }>
  /** Serves the dashboard of a store on a free port of this machine. */
  readonly openDashboard: (
    store: Store,
    dataFolder: string,
  ) => Promise<{ readonly url: string; close(): Promise<void> }>
}

/** The shape of `data` is documented in docs/reference/json-output.md; the text may change. */
export type CommandResult = {
  readonly data: unknown
  readonly print: (writer: TextWriter) => void
  readonly exitCode?: number
}

/** Where the results and notes of a command go. */
export type Output = {
  readonly isTerminal: boolean
  readonly columns: number
  readonly rows: number
  /** Writes results to stdout. Resolves when the reader can take more, so that a stream needs little memory. */
  readonly write: (text: string) => Promise<void>
  /** Returns a writer of the terminal's width, or of another. */
  readonly makeWriter: (columns?: number) => TextWriter
  /** Writes a note to stderr, apart from the results. */
  readonly note: (text: string) => void
  /** True if stdin and stderr are a terminal. */
  readonly canAsk: boolean
  /** Asks on stderr. Returns null if there is no terminal. */
  readonly ask: (question: string) => Promise<string | null>
}

/** Prints a result: its sections, or with `--json` its data. */
export function present(presented: Presented<object>, exitCode?: number): CommandResult {
  return {
    data: toJson(presented),
    print: (writer) => writer.sections(presented.sections),
    ...(exitCode !== undefined && { exitCode }),
  }
}

/** The same for a page of a list. */
export function presentList({ view, sections }: PresentedList<unknown>): CommandResult {
  return { data: view, print: (writer) => writer.sections(sections) }
}

/** The same for an operator action: its sentences and how to revert it, or with `--json` this data. */
export function presentAction(data: unknown, { sentences, undo }: ActionResult): CommandResult {
  return {
    data,
    print: (writer) => {
      for (const sentence of sentences) writer.paragraph(sentence)
      const isUndoShown = undo && sentences.some((sentence) => sentence.includes(undo.command))
      if (undo && !isUndoShown) writer.paragraph(`Undo: \`${undo.command}\``)
    },
  }
}

/** The same for a command that reports a state: anything but `ok` exits with 3. */
export function reportState(presented: Presented<object>): CommandResult {
  return present(presented, presented.severity === 'ok' ? EXIT.done : EXIT.needsAttention)
}

/** Infers the types of arguments and options: `options.limit` is a number because its option is one. */
export function defineCommand<
  const A extends Record<string, Argument<any>> = {},
  const O extends Record<string, Option<any>> = {},
>(command: Command<A, O>): Command<A, O> {
  return command
}
