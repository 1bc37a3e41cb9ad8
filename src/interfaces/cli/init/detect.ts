import { existsSync, readFileSync, statSync } from 'node:fs'
import { userInfo } from 'node:os'
import { basename, dirname, extname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import process from 'node:process'
import { UsageError } from '../../../core/model/errors.ts'
import type { Facts } from './facts.ts'
import { EXAMPLE_SOURCE } from './starter-crawl.ts'
import { slugify } from './shell-quote.ts'

export type InitRequest = {
  readonly folder: string
  readonly module: string
  readonly workers: number
}

/** Facts, and what else is known of the place. */
export type Project = {
  readonly facts: Facts
  /** As the crawl's file says it, or the example's where there is none; null: the file does not say it plainly. */
  readonly source: string | null
  readonly hasModule: boolean
  /** The package can be imported from the folder. */
  readonly installed: boolean
}

const BIN = join('node_modules', 'unstuck', 'bin', 'unstuck.js')

/** Looks at the folder. Nothing is written and none of the user's code is run. */
export function detectProject(request: InitRequest): Project {
  const folder = resolve(request.folder)
  if (existsSync(folder) && !statSync(folder).isDirectory()) {
    throw new UsageError(`${folder} is not a folder.`)
  }
  const module = relativeModule(folder, request.module)
  rejectUnsafePaths(folder, module, process.execPath)
  const hasModule = existsSync(join(folder, module))
  const source = hasModule ? readSourceName(join(folder, module)) : EXAMPLE_SOURCE
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
      locked: existsSync(join(folder, 'package-lock.json')),
    },
    source,
    hasModule,
    installed: found !== null,
  }
}

/** The nearest such file, in the folder or above it. */
export function findUpwards(from: string, name: string): string | null {
  for (let folder = from; ; folder = dirname(folder)) {
    const path = join(folder, name)
    if (existsSync(path)) return path
    if (folder === dirname(folder)) return null
  }
}

/** As seen from the folder, so that the files hold in a container too. */
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

/** A line break would end a line of a crontab or a unit. From under a backslash Node loads no modules. */
function rejectUnsafePaths(...paths: readonly string[]): void {
  for (const path of paths) {
    // oxlint-disable-next-line no-control-regex
    if (!/[\x00-\x1f\x7f]/.test(path) && !(sep === '/' && path.includes('\\'))) continue
    throw new UsageError(
      `${JSON.stringify(path)} has a backslash, a line break or another control character in it: Node or the files to be written could not deal with that. Use a path without.`,
    )
  }
}

/** Read, not run: it only makes a name, and `init` should not start anybody's code. */
function readSourceName(path: string): string | null {
  const said = /\bsource:\s*(['"`])([^'"`$\\\n]{1,200})\1/.exec(readFileSync(path, 'utf8'))
  return said?.[2] ?? null
}

function userName(): string {
  const { username } = userInfo()
  const domain = process.platform === 'win32' ? process.env['USERDOMAIN'] : undefined
  return domain ? `${domain}\\${username}` : username
}

function toForwardSlashes(path: string): string {
  return path.replaceAll(sep, '/')
}
