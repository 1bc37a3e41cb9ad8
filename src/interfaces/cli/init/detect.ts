import { existsSync, readFileSync, statSync } from 'node:fs'
import { userInfo } from 'node:os'
import { basename, dirname, extname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import process from 'node:process'
import { UsageError } from '../../../core/model/errors.ts'
import type { Facts } from './facts.ts'
import { EXAMPLE_SOURCE } from './starter-crawl.ts'
import { plainName } from './shell-quote.ts'

export type Asked = {
  readonly folder: string
  readonly module: string
  readonly workers: number
}

/** Facts, and what else is known of the place. */
export type Place = {
  readonly facts: Facts
  /** As the crawl's file says it, or the example's where there is none; null: the file does not say it plainly. */
  readonly source: string | null
  readonly hasModule: boolean
  /** The package can be imported from the folder. */
  readonly installed: boolean
}

const BIN = join('node_modules', 'unstuck', 'bin', 'unstuck.js')

/** Looks at the folder. Nothing is written and none of the user's code is run. */
export function gather(asked: Asked): Place {
  const folder = resolve(asked.folder)
  if (existsSync(folder) && !statSync(folder).isDirectory()) {
    throw new UsageError(`${folder} is not a folder.`)
  }
  const module = moduleIn(folder, asked.module)
  refuseOddPaths(folder, module, process.execPath)
  const hasModule = existsSync(join(folder, module))
  const source = hasModule ? sourceSaidIn(join(folder, module)) : EXAMPLE_SOURCE
  const found = upwards(folder, BIN)
  const bin = found ?? join(folder, BIN)
  return {
    facts: {
      folder,
      module,
      name: `unstuck-${plainName(source ?? basename(module, extname(module)))}`,
      workers: asked.workers,
      node: process.execPath,
      bin,
      binFromFolder: slashes(relative(folder, bin)),
      user: userName(),
      locked: existsSync(join(folder, 'package-lock.json')),
    },
    source,
    hasModule,
    installed: found !== null,
  }
}

/** The nearest such file, in the folder or above it. */
export function upwards(from: string, name: string): string | null {
  for (let folder = from; ; folder = dirname(folder)) {
    const path = join(folder, name)
    if (existsSync(path)) return path
    if (folder === dirname(folder)) return null
  }
}

/** As seen from the folder, so that the files hold in a container too. */
function moduleIn(folder: string, module: string): string {
  const path = relative(folder, resolve(folder, module))
  const isInside = path !== '' && !isAbsolute(path) && path.split(sep)[0] !== '..'
  if (!isInside || !/\.[cm]?[jt]s$/.test(path)) {
    throw new UsageError(
      `--module must be a file like crawl.ts inside ${folder}, not ${JSON.stringify(module)}.`,
    )
  }
  return path.startsWith('-') ? `./${slashes(path)}` : slashes(path)
}

/** A line break would end a line of a crontab or a unit. From under a backslash Node loads no modules. */
function refuseOddPaths(...paths: readonly string[]): void {
  for (const path of paths) {
    // oxlint-disable-next-line no-control-regex
    if (!/[\x00-\x1f\x7f]/.test(path) && !(sep === '/' && path.includes('\\'))) continue
    throw new UsageError(
      `${JSON.stringify(path)} has a backslash, a line break or another control character in it: Node or the files to be written could not deal with that. Use a path without.`,
    )
  }
}

/** Read, not run: it only makes a name, and `init` should not start anybody's code. */
function sourceSaidIn(path: string): string | null {
  const said = /\bsource:\s*(['"`])([^'"`$\\\n]{1,200})\1/.exec(readFileSync(path, 'utf8'))
  return said?.[2] ?? null
}

function userName(): string {
  const { username } = userInfo()
  const domain = process.platform === 'win32' ? process.env['USERDOMAIN'] : undefined
  return domain ? `${domain}\\${username}` : username
}

function slashes(path: string): string {
  return path.replaceAll(sep, '/')
}
