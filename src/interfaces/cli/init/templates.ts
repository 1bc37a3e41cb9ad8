import { readFileSync } from 'node:fs'

/** A file to write. */
export type NewFile = {
  /** Relative to the folder, with forward slashes. */
  readonly path: string
  readonly text: string
  /** Printed beside the path. */
  readonly about: string
  /** With a byte order mark, as Windows writes such files. Default: UTF-8. */
  readonly utf16?: true
}

const FOLDER = new URL('../../../../examples/init/', import.meta.url)

/** Reads a file of examples/init and replaces each `__NAME__` in it. */
export function renderTemplate(
  name: string,
  values: Readonly<Record<string, string>> = {},
): string {
  return readFileSync(new URL(name, FOLDER), 'utf8').replaceAll(
    /__([A-Z]+)__/g,
    (_, key: string) => {
      const value = values[key]
      if (value === undefined) throw new Error(`${name}: there is no value for ${key}`)
      return value
    },
  )
}
