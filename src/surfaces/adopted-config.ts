import { resolve } from 'node:path'
import type { Mapping, UserRow } from '../adopted/mapping.ts'
import { placeOf, readMapping } from '../adopted/read-mapping.ts'
import { isObject } from '../model/fields.ts'
import type { Policy } from '../model/policy.ts'
import { absoluteAddress } from '../runtime/config-file.ts'

/** Reads `adopted` of the config and adds to `mistakes`. `folder`: where relative paths count from. */
export function readAdopted(
  adopted: unknown,
  base: Policy,
  folder: string,
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
  const located = tables.map((table) => locate(table, folder))
  const seen = new Map<string, string>()
  for (const { name, db, schema, table } of located) {
    const which = JSON.stringify([db, schema, table])
    const other = seen.get(which)
    if (other !== undefined)
      mistakes.push(`${placeOf(name)} is the same table as ${placeOf(other)}`)
    seen.set(which, name)
  }
  return located
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
