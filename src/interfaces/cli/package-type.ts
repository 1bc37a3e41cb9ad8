import { readFileSync } from 'node:fs'
import { findUpwards } from './init/detect.ts'

/** By the nearest package.json Node reads a .ts file as a module or not. */
export function nearestPackage(folder: string): { path: string; isModule: boolean } | null {
  const path = findUpwards(folder, 'package.json')
  return path === null ? null : { path, isModule: typeIn(path) === 'module' }
}

/** What a new config is called, so that Node reads it as the module that it is. */
export function configNameFor(folder: string): string {
  return nearestPackage(folder)?.isModule === false ? 'unstuck.config.mts' : 'unstuck.config.ts'
}

function typeIn(path: string): unknown {
  try {
    return (JSON.parse(readFileSync(path, 'utf8')) as { type?: unknown } | null)?.type
  } catch {
    return undefined
  }
}
