import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** The nearest package.json decides whether Node reads a .ts file as a module. */
export function nearestPackage(folder: string): { path: string; isModule: boolean } | null {
  const path = findUpwards(folder, 'package.json')
  return path === null ? null : { path, isModule: typeIn(path) === 'module' }
}

/** Returns the file name of a new config that Node reads as a module. */
export function configNameFor(folder: string): string {
  return nearestPackage(folder)?.isModule === false ? 'unstuck.config.mts' : 'unstuck.config.ts'
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
