import { resolve } from 'node:path'
import type { Mapping, UserRow } from './mapping.ts'
import { placeOf, readMapping } from './read-mapping.ts'
import { isObject } from '../../core/model/fields.ts'
import type { Policy } from '../../core/model/policy.ts'
import { isWithin, realPathOf } from '../../core/host/trusted-path.ts'
import { absoluteAddress } from '../../app/config-file.ts'

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
  const filesIn = resolve(folder, mapping.filesIn ?? '.')
  return {
    ...mapping,
    db: db === null ? null : absoluteAddress(db, folder),
    filesIn,
    checkpoint: checkpoint && inFolder(checkpoint, filesIn),
    outputDir: outputDir && inFolder(outputDir, filesIn),
  }
}

type PathOf = (row: UserRow) => string | null | undefined

function inFolder(pathOf: PathOf, folder: string): PathOf {
  return (row) => {
    const path = pathOf(row)
    return typeof path === 'string' && path !== '' ? pathWithin(folder, path) : path
  }
}

/** Where a path leads. Throws when that is outside the folder: a row's own text may be part of it. */
function pathWithin(folder: string, path: string): string {
  const real = realPathOf(resolve(folder, path))
  if (isWithin(real, realPathOf(folder))) return real
  throw new Error(
    `${path} is not read: it leads out of ${folder}. If your files are elsewhere, name their folder with filesIn`,
  )
}
