import { basename, dirname, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { messageOf, toError, UsageError } from '../core/model/errors.ts'
import { nearestPackage } from '../lib/files/config-file.ts'

const TYPE_STRIPPING_HINT =
  'Node runs it as it is: imports need their file extension, and enum, namespace and parameter properties are not there.'

/** Node took a file with ES module syntax for CommonJS. */
const NOT_A_MODULE = /outside a module|Unexpected token 'export'|^await is only valid in async/
/** Or found no exports in a file that was imported. */
const MISSING_EXPORT = /^The requested module '(\.[^']+\.[jt]s)' does not provide/

/** Imports a module of the user. Throws `UsageError` with the reason and what to change. */
export async function importModule(path: string): Promise<{ default?: unknown }> {
  try {
    return (await import(pathToFileURL(path).href)) as { default?: unknown }
  } catch (thrown) {
    const error = toError(thrown)
    if (error instanceof UsageError) throw error
    const hint = moduleTypeHint(error, path) ?? TYPE_STRIPPING_HINT
    const message = `${path} could not be loaded: ${messageOf(error)}\n${hint}`
    throw new UsageError(message, { cause: error })
  }
}

function moduleTypeHint(error: Error, imported: string): string | null {
  // The stack of a syntax error begins with its place: it may be in a file that this one imports.
  const at = /^(?:file:\/\/)?(\/.+):\d+$/m.exec(error.stack ?? '')?.[1] ?? imported
  const missing = MISSING_EXPORT.exec(messageOf(error))?.[1]
  const path = missing === undefined ? at : resolve(dirname(at), missing)
  const found = nearestPackage(dirname(path))
  const isCommonJs = missing === undefined ? found?.type !== 'module' : found?.type === 'commonjs'
  if (!isCommonJs || (missing === undefined && !NOT_A_MODULE.test(messageOf(error)))) return null
  const name = basename(path)
  return (
    `${name} is an ES module, and ${found?.path ?? 'its package.json'} has no "type": "module". ` +
    `Add it with \`npm pkg set type=module\`, or name the file ${name.replace(/\.([jt]s)$/, '.m$1')}.`
  )
}
