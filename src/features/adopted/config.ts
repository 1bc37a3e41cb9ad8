import { resolve } from 'node:path'
import type { ConfigSection } from '../../contracts/settings.ts'
import { TABLE_RUN_KEY } from './ids.ts'
import type { Mapping, UserRow } from './mapping.ts'
import { configPathOf, parseMapping } from './parse-mapping.ts'
import { rowTraits } from './runs/status-mapping.ts'
import { isObject } from '../../core/model/fields.ts'
import type { Policy } from '../../core/model/policy.ts'
import { isWithin, resolveLinks } from '../../core/host/trusted-path.ts'
import { absoluteAddress } from '../../lib/files/config-file.ts'

export const ADOPTED_SECTION: ConfigSection<readonly Mapping[]> = {
  keys: ['adopted'],
  read({ adopted }, { policy, folder, db, mistakes, warnIfRisky }) {
    const tables = readAdopted(adopted, policy, { folder, ownDb: db }, mistakes)
    for (const table of tables) warnIfRisky(table.policy, `${configPathOf(table.name)}.policy`)
    return tables
  },
  tables: (tables) =>
    tables.map((table) => ({
      name: table.name,
      subject: { policy: table.policy, traits: rowTraits(table, TABLE_RUN_KEY) },
    })),
}

/** For tables that do not set them. */
type TableDefaults = {
  /** The base of relative paths. */
  readonly folder: string
  /** Unstuck's own database, if known. */
  readonly ownDb: string | undefined
}

/** Parses `adopted` of the config or of `open`; adds to `mistakes`. */
export function readAdopted(
  adopted: unknown,
  base: Policy,
  defaults: TableDefaults,
  mistakes: string[],
): Mapping[] {
  if (adopted === undefined) return []
  if (!isObject(adopted)) {
    mistakes.push('adopted must be an object: tables by the names that you give them')
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

/** SQLite ignores case in names, and calls the file `main`. */
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

/** Resolves paths from the folder of the config, whatever the current folder. */
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

/** Resolves links. Throws if the path is outside the folder: a row's own text may be part of it. */
function resolveWithin(folder: string, path: string): string {
  const real = resolveLinks(resolve(folder, path))
  if (isWithin(real, resolveLinks(folder))) return real
  throw new Error(
    `${path} is not read: it is outside ${folder}. If your files are elsewhere, set filesIn to their folder`,
  )
}
