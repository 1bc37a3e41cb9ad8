import { accessSync, constants, statSync } from 'node:fs'
import { basename, delimiter, extname, join, resolve } from 'node:path'
import process from 'node:process'
import { UsageError } from '../../../core/model/errors.ts'
import { checkSource } from '../../../lib/validate/source.ts'
import { splitCommand } from './command-words.ts'
import { slugify } from './project.ts'

/** A command that the files run with `unstuck run`. */
export type WrappedCommand = {
  readonly source: string
  readonly words: readonly [program: string, ...args: string[]]
  /** The program's path on this machine; null if it was not found. */
  readonly programPath: string | null
  readonly intervalMs: number
}

export type CommandRequest = {
  readonly folder: string
  readonly command: string
  readonly source: string | undefined
  readonly intervalMs: number
}

export function readCommand({ folder, command, ...request }: CommandRequest): WrappedCommand {
  const words = splitCommand(command, process.platform)
  const [program = '', ...args] = words
  const source = request.source ?? deriveSource(words)
  checkSource(source)
  if (request.intervalMs < 1) throw new UsageError('--interval must be at least 1ms.')
  return {
    source,
    words: [program, ...args],
    programPath: findProgram(program, folder),
    intervalMs: request.intervalMs,
  }
}

/** Returns a name for what the command scrapes: its module, its script, what it lets run, or its program. */
export function deriveSource(words: readonly string[]): string {
  const [program = ''] = words
  const after = (flag: string): string | undefined =>
    words.includes(flag) ? words[words.indexOf(flag) + 1] : undefined
  const script = words.find((word) => /^[^-].*\.[a-z]{1,4}$/i.test(word) && !word.includes('://'))
  const path = script ?? after('run') ?? program
  return slugify(after('-m') ?? basename(path, extname(path)))
}

/** Finds a program as a shell does. A path stays as it is: the files start the command in the folder. */
function findProgram(program: string, folder: string): string | null {
  if (/[/\\]/.test(program)) return isExecutable(resolve(folder, program)) ? program : null
  const extensions = process.platform === 'win32' ? (process.env['PATHEXT'] ?? '').split(';') : []
  for (const directory of (process.env['PATH'] ?? '').split(delimiter)) {
    if (directory === '') continue
    for (const extension of ['', ...extensions]) {
      const path = resolve(folder, join(directory, program + extension))
      if (isExecutable(path)) return path
    }
  }
  return null
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}
