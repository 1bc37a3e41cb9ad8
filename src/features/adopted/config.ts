import { resolve } from 'node:path'
import type { Mapping, UserRow } from './mapping.ts'
import { configPathOf, parseMapping } from './parse-mapping.ts'
import { isObject } from '../../core/model/fields.ts'
import type { Policy } from '../../core/model/policy.ts'
import { isWithin, resolveLinks } from '../../core/host/trusted-path.ts'
import { absoluteAddress } from '../../lib/files/config-file.ts'

/** Where tables are that do not say it. */
type TableDefaults = {
  /** That relative paths count from. */
  readonly folder: string
  /** Unstuck's own database, as far as it is known. */
  readonly ownDb: string | undefined
}

/** Reads `adopted`, of the config or of `open`, and adds to `mistakes`. */
export function readAdopted(
  adopted: unknown,
  base: Policy,
  defaults: TableDefaults,
  mistakes: string[],
): Mapping[] {
  if (adopted === undefined) return []
  if (!isObject(adopted)) {
    mistakes.push('adopted must be an object: tables of your own, by the names you give them')
    return []
  }
  const tables = Object.entries(adopted).flatMap(
    ([name, options]) => parseMapping(name, options, base, mistakes) ?? [],
  )
  const resolved = tables.map((table) => resolvePaths(table, defaults.folder))
  const seen = new Map<string, string>()
  for (const mapping of resolved) {
    const key = tableKey(mapping, defaults)
    const other = seen.get(key)
    if (other !== undefined)
      mistakes.push(`${configPathOf(mapping.name)} is the same table as ${configPathOf(other)}`)
    seen.set(key, mapping.name)
  }
  return resolved
}

/** In SQLite, names are the same in any case, and `main` is the file. */
function tableKey({ db, schema, table }: Mapping, { folder, ownDb }: TableDefaults): string {
  const address = db ?? (ownDb === undefined ? null : absoluteAddress(ownDb, folder))
  return address?.startsWith('sqlite:')
    ? JSON.stringify([
        address,
        schema?.toLowerCase() === 'main' ? null : schema,
        table.toLowerCase(),
      ])
    : JSON.stringify([address, schema, table])
}

/** Its files and its database are where the config is, whatever folder a command is called in. */
function resolvePaths(mapping: Mapping, folder: string): Mapping {
  const { db, checkpoint, outputDir } = mapping
  const filesIn = resolve(folder, mapping.filesIn ?? '.')
  return {
    ...mapping,
    db: db === null ? null : absoluteAddress(db, folder),
    filesIn,
    checkpoint: checkpoint && withinFolder(checkpoint, filesIn),
    outputDir: outputDir && withinFolder(outputDir, filesIn),
  }
}

type PathOf = (row: UserRow) => string | null | undefined

function withinFolder(pathOf: PathOf, folder: string): PathOf {
  return (row) => {
    const path = pathOf(row)
    return typeof path === 'string' && path !== '' ? resolveWithin(folder, path) : path
  }
}

/** Where a path leads. Throws when that is outside the folder: a row's own text may be part of it. */
function resolveWithin(folder: string, path: string): string {
  const real = resolveLinks(resolve(folder, path))
  if (isWithin(real, resolveLinks(folder))) return real
  throw new Error(
    `${path} is not read: it leads out of ${folder}. If your files are elsewhere, name their folder with filesIn`,
  )
}
