import { fileURLToPath } from 'node:url'

/**
 * The packages of `bench/package.json`. `npm ci` in the root does not install them; only some benchmarks and tests
 * need them.
 */

/** Returns the path of a module of one of these packages, or null if they are not installed. */
export function findModule(specifier: string): string | null {
  try {
    return fileURLToPath(import.meta.resolve(specifier))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND') return null
    throw error
  }
}

/** The reason why a benchmark or a test is skipped. */
export const notInstalled = (name: string): string =>
  `${name} is not installed; to install it: npm ci --prefix bench`
