import { existsSync, readFileSync, statSync } from 'node:fs'
import { userInfo } from 'node:os'
import { basename, extname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import process from 'node:process'
import { UsageError } from '../../../core/model/errors.ts'
import { findUpwards, nearestPackage } from '../../../lib/files/config-file.ts'
import type { WrappedCommand } from './command.ts'
import type { SupervisorName } from './supervisors.ts'

/** The source of the example crawl, and of the units and images made for it. */
export const EXAMPLE_SOURCE = 'example'

/** The values that templates are filled with. Paths are those of this machine. */
export type Facts = {
  readonly folder: string
  /** The crawl's file, relative to the folder, with forward slashes. */
  readonly module: string
  /** `unstuck-` and the source: valid as the name of a unit, an image and a pod. */
  readonly name: string
  readonly workers: number
  /** The Node that runs now. */
  readonly node: string
  /** The program, absolute, and relative to the folder. */
  readonly bin: string
  readonly binFromFolder: string
  readonly user: string
  /** `npm ci` needs a package-lock.json. */
  readonly hasLockFile: boolean
}

export type InitRequest = {
  readonly folder: string
  readonly module: string
  readonly workers: number
  /** Of the command that the files run, instead of a crawl. */
  readonly source?: string | undefined
}

export type Project = {
  readonly facts: Facts
  /** Read from the crawl's file, or the example's where there is none; null if the file has no literal for it. */
  readonly source: string | null
  readonly hasModule: boolean
  /** The package can be imported from the folder. */
  readonly installed: boolean
}

const BIN = join('node_modules', 'unstuck', 'bin', 'unstuck.js')

/** Inspects the folder. Writes nothing and runs no code of the user. */
export function detectProject(request: InitRequest): Project {
  const folder = resolve(request.folder)
  if (existsSync(folder) && !statSync(folder).isDirectory()) {
    throw new UsageError(`${folder} is not a folder.`)
  }
  const module = relativeModule(folder, request.module)
  rejectUnsafePaths(folder, module, process.execPath)
  const hasModule = existsSync(join(folder, module))
  const source =
    request.source ?? (hasModule ? readSourceName(join(folder, module)) : EXAMPLE_SOURCE)
  const found = findUpwards(folder, BIN)
  const bin = found ?? join(folder, BIN)
  return {
    facts: {
      folder,
      module,
      name: `unstuck-${slugify(source ?? basename(module, extname(module)))}`,
      workers: request.workers,
      node: process.execPath,
      bin,
      binFromFolder: toForwardSlashes(relative(folder, bin)),
      user: userName(),
      hasLockFile: existsSync(join(folder, 'package-lock.json')),
    },
    source,
    hasModule,
    installed: found !== null,
  }
}

/** Returns the path relative to the folder, so that the files work in a container too. */
function relativeModule(folder: string, module: string): string {
  const path = relative(folder, resolve(folder, module))
  const isInside = path !== '' && !isAbsolute(path) && path.split(sep)[0] !== '..'
  if (!isInside || !/\.[cm]?[jt]s$/.test(path)) {
    throw new UsageError(
      `--module must be a file like crawl.ts inside ${folder}, not ${JSON.stringify(module)}.`,
    )
  }
  return path.startsWith('-') ? `./${toForwardSlashes(path)}` : toForwardSlashes(path)
}

/** A line break would end a line of a crontab or a unit. Node loads no modules from a path with a backslash. */
function rejectUnsafePaths(...paths: readonly string[]): void {
  for (const path of paths) {
    // oxlint-disable-next-line no-control-regex
    if (!/[\x00-\x1f\x7f]/.test(path) && !(sep === '/' && path.includes('\\'))) continue
    throw new UsageError(
      `${JSON.stringify(path)} contains a backslash, a line break or another control character, which Node or the written files cannot handle. Use a path without it.`,
    )
  }
}

/** Reads the file as text: `init` runs no code of the user. */
function readSourceName(path: string): string | null {
  const match = /\bsource:\s*(['"`])([^'"`$\\\n]{1,200})\1/.exec(readFileSync(path, 'utf8'))
  return match?.[2] ?? null
}

function userName(): string {
  const { username } = userInfo()
  const domain = process.platform === 'win32' ? process.env['USERDOMAIN'] : undefined
  return domain ? `${domain}\\${username}` : username
}

function toForwardSlashes(path: string): string {
  return path.replaceAll(sep, '/')
}

/** Returns lower case, digits and hyphens, which are valid in the names of units, images and pods. */
export function slugify(text: string): string {
  const plain = text
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, 40)
    .replaceAll(/^-+|-+$/g, '')
  return plain || 'crawl'
}

/** Something that the files need and that is missing, with the commands that fix it. */
export type Advice = { readonly note: string; readonly commands: readonly string[] }

const SET_TYPE = 'npm pkg set type=module'

/** `command`: the files run this instead of the crawl. */
export function adviceFor(
  project: Project,
  wanted: readonly SupervisorName[],
  command: WrappedCommand | null,
): Advice[] {
  return [
    command === null ? packageAdvice(project) : programAdvice(command),
    installAdvice(project, command),
    windowsAdvice(wanted),
  ].filter((advice) => advice !== null)
}

function programAdvice({ words: [program], programPath }: WrappedCommand): Advice | null {
  if (programPath !== null) return null
  const note = `There is no program ${JSON.stringify(program)} in the PATH or the folder. Where the command runs, it must be found.`
  return { note, commands: [] }
}

/** The nearest package.json decides whether Node reads a .ts file as a module. It is not changed here. */
function packageAdvice({ facts: { folder, module } }: Project): Advice | null {
  if (/\.m[jt]s$/.test(module)) return null
  const found = nearestPackage(folder)
  if (found === null) {
    return {
      note: `There is no package.json. ${module} needs one with "type": "module".`,
      commands: ['npm init -y', SET_TYPE],
    }
  }
  if (found.type === 'module') return null
  const other = `${basename(module, extname(module))}.mts`
  return {
    note: `${found.path} has no "type": "module", which ${module} needs. If other code there is CommonJS, name this file ${other} instead.`,
    commands: [SET_TYPE],
  }
}

function installAdvice(
  { facts: { module }, installed }: Project,
  command: WrappedCommand | null,
): Advice | null {
  if (installed) return null
  const use = command === null ? `${module} imports it` : 'the files start it from there'
  const note = `unstuck is not installed in this folder, and ${use}. Install it here first, as its README says.`
  return { note, commands: [] }
}

function windowsAdvice(wanted: readonly SupervisorName[]): Advice | null {
  if (!wanted.includes('windows') || process.platform === 'win32') return null
  const note =
    'The file for Windows contains the paths and the user of this machine. Run `unstuck init` on the machine that will use it.'
  return { note, commands: [] }
}
