import { readdirSync, statSync } from 'node:fs'
import { dirname, join, parse, relative, resolve } from 'node:path'
import { closest } from '../core/model/closest.ts'
import { UsageError } from '../core/model/errors.ts'
import type { DefinedCrawl } from '../contracts/define-crawl.ts'
import { importModule } from './import-module.ts'

const MODULE = /\.[cm]?[jt]s$/

/** Returns the module of the name, or of a similar one, that is in the same folder. */
export function similarModule(path: string): string | null {
  const folder = dirname(path)
  const files = readFolder(folder).filter((file) => MODULE.test(file))
  const name = closest(
    parse(path).name,
    files.map((file) => parse(file).name),
  )
  const found = files.find((file) => parse(file).name === name)
  return found === undefined ? null : join(folder, found)
}

/** Imports a module whose default export is a crawl. `command`: the one that was called with it. */
export async function loadCrawl(module: string, command = 'work'): Promise<DefinedCrawl> {
  const path = resolve(module)
  if (!isFile(path)) {
    const similar = similarModule(path)
    throw new UsageError(
      `There is no module ${path}. ${
        similar
          ? `Did you mean ${relative(process.cwd(), similar)}?`
          : `Give the path of a file that exports a crawl, as in \`unstuck ${command} crawl.ts\`.`
      }`,
    )
  }
  const exported = await importModule(path)
  if (!isCrawl(exported.default)) {
    throw new UsageError(
      `${path} has no crawl as its default export. Write \`export default defineCrawl({ source, targets, page })\`.`,
    )
  }
  return exported.default
}

/** By its mark and not by its class: the user's copy of this package may be another than the one that runs it. */
function isCrawl(value: unknown): value is DefinedCrawl {
  return typeof value === 'object' && value !== null && 'isCrawl' in value && value.isCrawl === true
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true
}

function readFolder(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
