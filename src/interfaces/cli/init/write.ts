import { existsSync, lstatSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { messageOf, UsageError } from '../../../core/model/errors.ts'

export type FileResult = {
  readonly path: string
  readonly action: 'written' | 'kept' | 'replaced'
  readonly about: string
}

export type WriteOptions = { readonly force: boolean; readonly dryRun: boolean }

export const ALREADY_EXISTS = 'it was there already'

/** Writes a new file. Keeps one that exists, or replaces it with `force`. */
export function writeNewFile(
  folder: string,
  file: NewFile,
  { force, dryRun }: WriteOptions,
): FileResult {
  const { path, about } = file
  const full = join(folder, path)
  return withUsageError(full, () => {
    const exists = lstatSync(full, { throwIfNoEntry: false }) !== undefined
    if (exists && !force) return { path, action: 'kept', about: ALREADY_EXISTS }
    if (!dryRun) write(full, bytesOf(file), force ? 'w' : 'wx')
    return { path, action: exists ? 'replaced' : 'written', about }
  })
}

/** Adds `.unstuck/` to .gitignore. */
export function updateGitignore(
  folder: string,
  { dryRun }: Pick<WriteOptions, 'dryRun'>,
): FileResult {
  const path = '.gitignore'
  const full = join(folder, path)
  return withUsageError(full, () => {
    const text = withUnstuckIgnored(existsSync(full) ? readFileSync(full, 'utf8') : '')
    if (text === null)
      return { path, action: 'kept', about: `${ALREADY_EXISTS} and has .unstuck/ in it` }
    if (!dryRun) write(full, text, 'w')
    return { path, action: 'written', about: 'with .unstuck/, where the database is' }
  })
}

function write(path: string, data: string | Buffer, flag: 'w' | 'wx'): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, data, { flag })
}

/** A directory in place of the file, a missing permission: the caller can fix these. */
function withUsageError(path: string, act: () => FileResult): FileResult {
  try {
    return act()
  } catch (error) {
    throw new UsageError(`${path} could not be written: ${messageOf(error)}`, { cause: error })
  }
}

function bytesOf({ text, utf16 }: NewFile): string | Buffer {
  return utf16 ? Buffer.from(`\uFEFF${text.replaceAll('\n', '\r\n')}`, 'utf16le') : text
}

const ENTRY = '.unstuck/'
const EQUIVALENTS = ['.unstuck', '.unstuck/', '/.unstuck', '/.unstuck/']

/** Returns the text of .gitignore with `.unstuck/` added; null if it has that entry. */
export function withUnstuckIgnored(text: string): string | null {
  if (text.split(/\r?\n/).some((line) => EQUIVALENTS.includes(line.trim()))) return null
  const end = text.includes('\r\n') ? '\r\n' : '\n'
  const before = text === '' || text.endsWith('\n') ? text : text + end
  return `${before}${ENTRY}${end}`
}

/** A file to write. */
export type NewFile = {
  /** Relative to the folder, with forward slashes. */
  readonly path: string
  readonly text: string
  /** Printed beside the path. */
  readonly about: string
  /** With a byte order mark, as Windows writes such files. Default: UTF-8. */
  readonly utf16?: true
}

const FOLDER = new URL('../../../../examples/init/', import.meta.url)

/** Reads a file of examples/init and replaces each `__NAME__` in it. */
export function renderTemplate(
  name: string,
  values: Readonly<Record<string, string>> = {},
): string {
  return readFileSync(new URL(name, FOLDER), 'utf8').replaceAll(
    /__([A-Z]+)__/g,
    (_, key: string) => {
      const value = values[key]
      if (value === undefined) throw new Error(`${name}: there is no value for ${key}`)
      return value
    },
  )
}
