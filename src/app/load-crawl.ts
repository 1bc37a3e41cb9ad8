import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { messageOf, toError, UsageError } from '../core/model/errors.ts'
import type { DefinedCrawl } from '../contracts/define-crawl.ts'

/** Imports a module whose default export is a crawl. */
export async function loadCrawl(module: string): Promise<DefinedCrawl> {
  const path = resolve(module)
  if (!existsSync(path)) {
    throw new UsageError(
      `There is no module ${path}. Give the path of a file that exports a crawl, as in \`unstuck work crawl.ts\`.`,
    )
  }
  let exported: { default?: unknown }
  try {
    exported = (await import(pathToFileURL(path).href)) as { default?: unknown }
  } catch (thrown) {
    const error = toError(thrown)
    if (error instanceof UsageError) throw error
    throw new UsageError(
      `${path} could not be loaded: ${messageOf(error)}\n` +
        'Node runs it as it is: imports need their file extension, and enum, namespace and parameter properties are not there.',
      { cause: error },
    )
  }
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
