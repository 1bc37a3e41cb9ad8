import process from 'node:process'
import type { Argument as Positional, Command as Program, Option as Flag } from 'commander'
import { safeText } from '../../../lib/text/safe-text.ts'
import { COMMANDS } from '../commands.ts'
import type { Streams } from '../output.ts'
import { declare, makeProgram } from '../program.ts'
import { readBashLine } from './bash-line.ts'
import { loadValues, VALUES } from './values.ts'

/** A word that fits, and what it is. */
export type Candidate = { readonly value: string; readonly about: string }

/** `files`: the shell completes names of files where no word fits. */
export type Completion = {
  readonly candidates: readonly Candidate[]
  readonly files: 'none' | 'files' | 'folders'
}

/** What of the line is known when its last word is completed. */
export type TypedLine = {
  readonly command: readonly string[]
  readonly args: readonly string[]
  /** `--db` of the line. */
  readonly db: string | undefined
}

/**
 * Prints what completes a line, for the script of a shell: `files`, `folders` or `none`, then one word per line. Prints
 * nothing after an error. `argv`: the shell, `--`, and for bash the line and its word breaks, else the words.
 */
export async function printCompletion(
  [shell, , ...given]: readonly string[],
  { stdout }: Streams,
): Promise<void> {
  const write = stdout.write.bind(stdout)
  // What a config prints when it is loaded would be taken for words.
  stdout.write = () => true
  try {
    const lines = await (shell === 'bash' ? completeBash(given) : completeWords(given))
    write(lines.map((line) => `${line}\n`).join(''))
  } catch {
    // A message would end up in the line that is being typed.
  }
}

async function completeBash([line = '', breaks = '']: readonly string[]): Promise<string[]> {
  const { words, current, insert } = readBashLine(line, breaks)
  const { candidates, files } = await complete(words.slice(1), current)
  return [files, ...candidates.flatMap(({ value }) => insert(value) ?? [])]
}

async function completeWords(words: readonly string[]): Promise<string[]> {
  const { candidates, files } = await complete(words.slice(1, -1), words.at(-1) ?? '')
  return [files, ...candidates.map(({ value, about }) => `${value}\t${safeText(about)}`)]
}

/** Returns what `current` can become after these words. */
async function complete(words: readonly string[], current: string): Promise<Completion> {
  const place = await findPlace(words[0] === 'help' ? words.slice(1) : words)
  const { candidates, files } = await candidatesAt(place, current)
  return { files, candidates: candidates.filter((one) => isUsable(one, current)) }
}

/** Control characters could act on the terminal. */
function isUsable({ value }: Candidate, current: string): boolean {
  return value.startsWith(current) && !/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u.test(value)
}

/** Where in a command a line ends. */
type Place = {
  readonly program: Program
  readonly line: TypedLine
  /** The flag whose value is next. */
  readonly flag: Flag | null
  /** Behind `--`: no flags. */
  readonly isPlain: boolean
  readonly used: ReadonlySet<string>
}

async function findPlace(words: readonly string[]): Promise<Place> {
  let program = makeProgram(COMMANDS, process, async () => {})
  const [command, args, used]: [string[], string[], Set<string>] = [[], [], new Set()]
  let [flag, isPlain, db] = [null as Flag | null, false, undefined as string | undefined]
  for (const word of words) {
    if (flag && !(flag.variadic && word.startsWith('-'))) {
      if (flag.long === '--db') db = word
      if (!flag.variadic) flag = null
    } else if (word === '--') {
      ;[flag, isPlain] = [null, true]
    } else if (word.startsWith('-') && !isPlain) {
      const [name, value] = splitFlag(word)
      flag = flagNamed(program, name)
      if (flag?.long) used.add(flag.long)
      if (flag?.long === '--db') db = value
      if (!flag?.required || value !== undefined) flag = null
    } else {
      const sub = args.length === 0 && program.commands.find((one) => one.name() === word)
      if (sub) {
        await declare(sub)
        ;[program, isPlain] = [sub, false]
        command.push(word)
      } else {
        args.push(word)
      }
    }
  }
  return { program, line: { command, args, db }, flag, isPlain, used }
}

/** `--status=failed` in its two parts. */
function splitFlag(word: string): [name: string, value: string | undefined] {
  const at = word.startsWith('--') ? word.indexOf('=') : -1
  return at === -1 ? [word, undefined] : [word.slice(0, at), word.slice(at + 1)]
}

function flagsOf(program: Program): Flag[] {
  return program.createHelp().visibleOptions(program)
}

function flagNamed(program: Program, name: string): Flag | null {
  return flagsOf(program).find(({ long, short }) => long === name || short === name) ?? null
}

async function candidatesAt(place: Place, current: string): Promise<Completion> {
  const { program, line, flag, isPlain, used } = place
  if (flag && !(flag.variadic && current.startsWith('-'))) return valuesOf(flag, line)
  const [name, value] = splitFlag(current)
  const named = value === undefined || isPlain ? null : flagNamed(program, name)
  if (named) return withPrefix(`${name}=`, await valuesOf(named, line))
  const flags = flagsOf(program)
    .filter(({ long, variadic }) => long && (variadic || !used.has(long)))
    .map(({ long, description }) => ({ value: long!, about: description }))
  if (current.startsWith('-') && !isPlain) return { candidates: flags, files: 'none' }
  if (program.commands.length > 0) {
    const candidates = program.commands.map((sub) => ({ value: sub.name(), about: sub.summary() }))
    return { candidates, files: 'none' }
  }
  const declared = program.registeredArguments
  const last = declared.at(-1)
  const argument = declared[line.args.length] ?? (last?.variadic ? last : undefined)
  if (argument) return valuesOf(argument, line)
  return { candidates: isPlain ? [] : flags, files: 'none' }
}

function withPrefix(prefix: string, { candidates, files }: Completion): Completion {
  return {
    candidates: candidates.map(({ value, about }) => ({ value: `${prefix}${value}`, about })),
    files,
  }
}

/** Returns the values of a flag or an argument, by what the help calls them. */
async function valuesOf(of: Flag | Positional, line: TypedLine): Promise<Completion> {
  if (of.argChoices)
    return { candidates: of.argChoices.map((value) => ({ value, about: '' })), files: 'none' }
  const label = 'flags' in of ? placeholderOf(of) : of.name()
  const kinds = VALUES[`${line.command.join(' ')} ${label}`] ?? VALUES[label] ?? []
  return {
    candidates: await loadValues(kinds, line),
    files: kinds.find((kind) => kind === 'files' || kind === 'folders') ?? 'none',
  }
}

/** `SOURCE` of `--source <SOURCE>`; empty for a switch. */
export function placeholderOf({ flags }: Pick<Flag, 'flags'>): string {
  return /<([^>]*?)(?:\.\.\.)?>$/.exec(flags)?.[1] ?? ''
}
