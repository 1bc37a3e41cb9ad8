import { readFileSync } from 'node:fs'

/** This package's version, from its own package.json: the one place where it is written. */
export const VERSION: string = (
  JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as {
    version: string
  }
).version
