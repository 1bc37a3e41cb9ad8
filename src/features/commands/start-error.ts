import { statSync } from 'node:fs'
import { delimiter, resolve } from 'node:path'
import type { CommandSpec } from './watchdog-messages.ts'

/** The system's search path without a PATH. */
const DEFAULT_PATH = '/bin:/usr/bin'

/**
 * Returns the system's code for a command that could not be started. The system reports EACCES when it may not enter one
 * of the folders of the PATH. Shells skip such a folder: a program that is in none of the others does not exist.
 */
export function startErrorCode(
  { code = 'UNKNOWN' }: NodeJS.ErrnoException,
  { command: [program = ''], cwd, env }: Pick<CommandSpec, 'command' | 'cwd' | 'env'>,
): string {
  if (code !== 'EACCES' || program.includes('/')) return code
  const folders = (env['PATH'] ?? DEFAULT_PATH).split(delimiter)
  return folders.some((folder) => isFile(resolve(cwd, folder, program))) ? code : 'ENOENT'
}

function isFile(path: string): boolean {
  try {
    return statSync(path).isFile()
  } catch {
    return false
  }
}
