import { relative } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'

/** Returns the path of a page below `docs/` where this package is installed: from the current folder if it is below it. */
export function docPath(page: string): string {
  const path = fileURLToPath(new URL(`../../../docs/${page}`, import.meta.url))
  const fromHere = relative(process.cwd(), path)
  return fromHere.startsWith('..') ? path : fromHere
}
