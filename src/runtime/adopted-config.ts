import { resolve } from 'node:path'
import type { Mapping, UserRow } from '../adopted/mapping.ts'
import { placeOf, readMapping } from '../adopted/read-mapping.ts'
import { isObject } from '../model/fields.ts'
import type { Policy } from '../model/policy.ts'
import { absoluteAddress } from './config-file.ts'

/** Where tables are that do not say it. */
type Place = {
  /** That relative paths count from. */
  readonly folder: string
  /** Unstuck's own database, as far as it is known. */
  readonly own: string | undefined
}

/** Reads `adopted`, of the config or of `open`, and adds to `mistakes`. */
export function readAdopted(
  adopted: unknown,
  base: Policy,
  place: Place,
  mistakes: string[],
): Mapping[] {
  if (adopted === undefined) return []
  if (!isObject(adopted)) {
    mistakes.push('adopted must be an object: tables of your own, by the names you give them')
    return []
  }
  const tables = Object.entries(adopted).flatMap(
    ([name, options]) => readMapping(name, options, base, mistakes) ?? [],
  )
  const located = tables.map((table) => locate(table, place.folder))
  const seen = new Map<string, string>()
  for (const mapping of located) {
    const which = whichTable(mapping, place)
    const other = seen.get(which)
    if (other !== undefined)
      mistakes.push(`${placeOf(mapping.name)} is the same table as ${placeOf(other)}`)
    seen.set(which, mapping.name)
  }
  return located
}

/** In SQLite, names are the same in any case, and `main` is the file. */
function whichTable({ db, schema, table }: Mapping, { folder, own }: Place): string {
  const at = db ?? (own === undefined ? null : absoluteAddress(own, folder))
  return at?.startsWith('sqlite:')
    ? JSON.stringify([at, schema?.toLowerCase() === 'main' ? null : schema, table.toLowerCase()])
    : JSON.stringify([at, schema, table])
}

/** Its files and its database are where the config is, whatever folder a command is called in. */
function locate(mapping: Mapping, folder: string): Mapping {
  const { db, checkpoint, outputDir } = mapping
  return {
    ...mapping,
    db: db === null ? null : absoluteAddress(db, folder),
    checkpoint: checkpoint && inFolder(checkpoint, folder),
    outputDir: outputDir && inFolder(outputDir, folder),
  }
}

type PathOf = (row: UserRow) => string | null | undefined

function inFolder(pathOf: PathOf, folder: string): PathOf {
  return (row) => {
    const path = pathOf(row)
    return typeof path === 'string' && path !== '' ? resolve(folder, path) : path
  }
}
