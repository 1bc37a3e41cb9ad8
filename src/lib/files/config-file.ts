import { existsSync, readFileSync } from 'node:fs'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { assertTrusted } from '../../core/host/trusted-path.ts'
import { withConnections } from './database-address.ts'

const CONFIG_NAMES = [
  'unstuck.config.ts',
  'unstuck.config.mts',
  'unstuck.config.js',
  'unstuck.config.mjs',
]

/** The database where nothing names one. */
export const DEFAULT_ADDRESS = 'sqlite:.unstuck/unstuck.db'

/**
 * The config that counts for a folder: in it, or in the nearest folder above. Throws when another user could have
 * written it: it is code, and found without having been named.
 */
export function findConfig(from: string): string | null {
  const path = nearestConfig(from)
  if (path !== null) assertTrusted(path, 'config')
  return path
}

/** The same, not checked: nothing in it may be used. */
export function nearestConfig(from: string): string | null {
  for (let folder = resolve(from); ; folder = dirname(folder)) {
    const found = CONFIG_NAMES.map((name) => join(folder, name)).find((path) => existsSync(path))
    if (found) return found
    if (folder === dirname(folder)) return null
  }
}

/** The folder that relative database paths count from. */
export function configFolder(cwd: string): string {
  const path = findConfig(cwd)
  return path === null ? cwd : dirname(path)
}

/** An address whose path, if it has one, is absolute: so that cron and a shell in another folder share one lock. */
export function absoluteAddress(address: string, folder: string): string {
  if (!address.startsWith('sqlite:')) return address
  const path = address.slice('sqlite:'.length)
  return isAbsolute(path) ? address : `sqlite:${join(folder, path)}`
}

/**
 * Returns the database of code: the given one, else UNSTUCK_DB, else the config's, else the default. Relative paths count
 * from the folder of the config; without a `path` in `configured`, from that of the nearest one.
 */
export function databaseAddress(
  explicit: string | undefined,
  configured: {
    readonly db?: string | undefined
    readonly connections?: number | undefined
    readonly path?: string | null
  } = {},
): string {
  const address = explicit || process.env['UNSTUCK_DB'] || configured.db
  const { path = findConfig(process.cwd()) } = configured
  const folder = path === null ? process.cwd() : dirname(path)
  if (!address) return defaultAddress(folder)
  return withConnections(absoluteAddress(address, folder), configured.connections)
}

/** Throws when another user could have made it: it was not named, only found. */
export function defaultAddress(folder: string): string {
  assertTrusted(join(folder, '.unstuck'), 'data folder')
  return absoluteAddress(DEFAULT_ADDRESS, folder)
}

/** Whether anything can be at an address: a server is asked, a file is looked for. */
export function databaseExists(address: string): boolean {
  return !address.startsWith('sqlite:') || existsSync(address.slice('sqlite:'.length))
}

/** The nearest package.json decides whether Node reads a .ts file as a module. */
export function nearestPackage(folder: string): { path: string; type: unknown } | null {
  const path = findUpwards(folder, 'package.json')
  return path === null ? null : { path, type: typeIn(path) }
}

/** Returns the file name of a new config that Node reads as a module. */
export function configNameFor(folder: string): string {
  const found = nearestPackage(folder)
  return found === null || found.type === 'module' ? 'unstuck.config.ts' : 'unstuck.config.mts'
}

/** Returns the nearest file of this name, in the folder or above it. */
export function findUpwards(from: string, name: string): string | null {
  for (let folder = from; ; folder = dirname(folder)) {
    const path = join(folder, name)
    if (existsSync(path)) return path
    if (folder === dirname(folder)) return null
  }
}

function typeIn(path: string): unknown {
  try {
    return (JSON.parse(readFileSync(path, 'utf8')) as { type?: unknown } | null)?.type
  } catch {
    return undefined
  }
}
