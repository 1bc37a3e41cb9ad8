import { readFileSync } from 'node:fs'
import { Argument as Positional, Command as Program, Option as Flag } from 'commander'
import { COLOUR_CHOICES, type Streams } from './output.ts'
import type { Command, CommandEntry } from '../../contracts/command.ts'
import type { Argument, Option } from '../../contracts/options.ts'

const COMMON = 'Common options:'
const EXAMPLES = ['unstuck demo', 'unstuck work crawl.ts --workers 10', 'unstuck status --watch']

/** Called with what the user wrote, not read yet. */
export type Invoke = (command: Command<any, any>, args: unknown[], flags: Flags) => Promise<void>
export type Flags = Readonly<Record<string, unknown>>

/** The command line as commander knows it: only the called command's file is loaded, just before it is parsed. */
export function makeProgram(
  entries: readonly CommandEntry[],
  { stdout, stderr }: Streams,
  call: Invoke,
): Program {
  const program = addCommonOptions(configure(new Program('unstuck')))
    .configureOutput({
      writeOut: (text) => void stdout.write(text),
      writeErr: (text) => void stderr.write(text),
      getOutHelpWidth: () => (stdout.isTTY ? stdout.columns : 80),
      getErrHelpWidth: () => (stderr.isTTY ? stderr.columns : 80),
    })
    .optionsGroup(COMMON)
    .version(version(), '-v, --version', 'the version, and nothing else')
    .description('Crash-proof runs for crawlers, scrapers and other long jobs.')
    .addHelpText('before', examplesText(EXAMPLES))
    .addHelpText('after', '\nEach command explains itself: unstuck COMMAND --help')
  addCommands(program, entries, call)
  return program
}

/** Commands whose file is not loaded yet. */
const pending = new WeakMap<Program, () => Promise<void>>()

/** Loads the file of a command and adds its arguments and flags. */
export async function declare(program: Program): Promise<void> {
  const load = pending.get(program)
  pending.delete(program)
  await load?.()
}

function addCommands(parent: Program, entries: readonly CommandEntry[], call: Invoke): void {
  for (const entry of entries) {
    const sub = configure(parent.command(entry.name))
      .summary(entry.summary)
      .description(entry.summary)
    if (entry.group) sub.helpGroup(entry.group)
    if ('load' in entry)
      pending.set(sub, async () => addDeclarations(sub, (await entry.load()).command, call))
    else addCommands(addCommonOptions(sub), entry.commands, call)
  }
  parent.hook('preSubcommand', (_, sub) => declare(sub))
}

function configure(program: Program): Program {
  return program
    .helpCommand(false)
    .configureHelp({ subcommandTerm: (sub) => sub.name(), optionDescription: explain })
    .configureOutput({ outputError: () => {} })
    .enablePositionalOptions()
    .exitOverride()
    .addHelpOption(new Flag('-h, --help', 'this text').helpGroup(COMMON))
}

function explain({ description, argChoices }: Flag): string {
  return description || (argChoices?.join(', ') ?? '')
}

/** Last, so that the help shows a command's own options first. */
function addCommonOptions(program: Program): Program {
  const common = [
    new Flag('--json', 'the result as JSON'),
    new Flag('--db <URL>', 'sqlite:PATH or postgres://…; else UNSTUCK_DB, else the config'),
    new Flag('--color <WHEN>').choices(COLOUR_CHOICES),
    new Flag('--debug', 'where in the code an error happened'),
  ]
  for (const flag of common) program.addOption(flag.helpGroup(COMMON))
  return program
}

function addDeclarations(program: Program, command: Command<any, any>, call: Invoke): void {
  program.addHelpText('before', examplesText(command.examples))
  for (const [name, argument] of Object.entries(command.args ?? {}))
    addArgument(program, name, argument as Argument<unknown>)
  for (const [name, option] of Object.entries<Option<unknown>>(command.options ?? {})) {
    const flag = new Flag(flagsOf(name, option), describe(option))
    // For completion; what is given is checked by the option itself.
    if (option.choices) flag.argChoices = [...option.choices]
    program.addOption(flag)
  }
  if (command.watch) program.option('-w, --watch', 'keep it live until Ctrl-C')
  addCommonOptions(program)
  if (command.passThrough) program.passThroughOptions()
  program.action(async () => call(command, program.processedArgs, program.optsWithGlobals()))
}

function addArgument(
  program: Program,
  name: string,
  { description, shape, choices }: Argument<unknown>,
): void {
  const label = name.toUpperCase()
  const written = { required: `<${label}>`, optional: `[${label}]`, rest: `[${label}...]` }[shape]
  const positional = new Positional(written, description)
  program.addArgument(choices ? positional.choices(choices) : positional)
}

function flagsOf(name: string, option: Option<unknown>): string {
  const long = `--${option.negated ? 'no-' : ''}${kebab(name)}`
  const flags = option.short ? `${option.short}, ${long}` : long
  if (option.value === null) return flags
  const value = isWide(option) ? kebab(name).toUpperCase() : option.value
  return `${flags} <${value}${option.many ? '...' : ''}>`
}

const VALUE_WIDTH_MAX = 32

/** Many choices in the first column would leave no room for the second one. */
function isWide({ choices, value }: Option<unknown>): boolean {
  return choices !== undefined && value !== null && value.length > VALUE_WIDTH_MAX
}

function describe(option: Option<unknown>): string {
  const { value, defaultValue, defaultText } = option
  const description = isWide(option)
    ? `${option.description}: ${option.choices?.join(', ')}`
    : option.description
  const isShown =
    value !== null && (typeof defaultValue === 'string' || typeof defaultValue === 'number')
  const text = defaultText ?? (isShown ? defaultValue : null)
  return text === null ? description : `${description} (default: ${text})`
}

export function kebab(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}

function examplesText(examples: readonly string[]): string {
  return `Examples:\n${examples.map((example) => `  ${example}\n`).join('')}`
}

function version(): string {
  const file = new URL('../../../package.json', import.meta.url)
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
}
