import { dirname, isAbsolute, join, relative, sep } from 'node:path'
import process from 'node:process'
import type { Mapping } from '../../../features/adopted/mapping.ts'
import { splitTableName } from '../../../features/adopted/identifiers.ts'
import { absoluteAddress, DEFAULT_ADDRESS, findConfig } from '../../../app/config-file.ts'
import { configNameFor } from '../package-type.ts'
import { literal } from './config-text.ts'

/** Where the config is or would be, and how databases are named in it. */
export type ConfigTarget = {
  readonly path: string
  readonly exists: boolean
  /** Unstuck's own database by that config. */
  readonly ownAddress: string
  /** The same as code, for a config that is made now. */
  readonly ownDbCode: string
  /** The database of the tables, as code; null: it is Unstuck's own. */
  readonly tablesDbCode: string | null
  /** The variable of the environment that the config reads, and whether it leads there now; null: it reads none. */
  readonly variable: { readonly name: string; readonly isSet: boolean } | null
}

/**
 * A table in PostgreSQL can be beside Unstuck's own, which have a schema to themselves. A SQLite file has no such thing,
 * so there Unstuck keeps one of its own and the user's stays as it is. Passwords stay in the environment.
 */
export function findConfigTarget(
  address: string,
  /** What the config that is there says of its database, unless it is to be replaced. */
  { configured, isReplaced }: { configured: string | undefined; isReplaced: boolean },
  cwd: string = process.cwd(),
  env: NodeJS.ProcessEnv = process.env,
): ConfigTarget {
  const found = findConfig(cwd)
  const path = found ?? join(cwd, configNameFor(cwd))
  const folder = dirname(path)
  const isServer = !address.startsWith('sqlite:')
  const newAddress = isServer ? address : DEFAULT_ADDRESS
  const isKept = found !== null && !isReplaced
  const ownAddress = absoluteAddress(isKept ? (configured ?? DEFAULT_ADDRESS) : newAddress, folder)
  const known = isServer ? variableOf(address, env) : null
  const isNamed = isServer && !(isKept && ownAddress === address)
  const code = isServer
    ? `process.env[${literal(known ?? DEFAULT_VARIABLE)}]`
    : literal(`sqlite:${relativePath(folder, address.slice('sqlite:'.length))}`)
  return {
    path,
    exists: found !== null,
    ownAddress,
    ownDbCode: isServer ? code : literal(DEFAULT_ADDRESS),
    tablesDbCode: ownAddress === address ? null : code,
    variable: isNamed ? { name: known ?? DEFAULT_VARIABLE, isSet: known !== null } : null,
  }
}

const DEFAULT_VARIABLE = 'DATABASE_URL'

function relativePath(folder: string, file: string): string {
  const path = relative(folder, file)
  return isAbsolute(path) ? path : path.replaceAll(sep, '/')
}

/** The one that people would use, where several lead there. */
function variableOf(address: string, env: NodeJS.ProcessEnv): string | null {
  const names = Object.keys(env).filter((name) => env[name] === address && /^[A-Z]\w*$/.test(name))
  return [DEFAULT_VARIABLE, 'UNSTUCK_DB'].find((name) => names.includes(name)) ?? names[0] ?? null
}

/** What the config calls a table that it has adopted already; null: it has not. */
export function adoptedAs(
  table: string,
  address: string,
  adopted: readonly Mapping[],
  ownAddress: string,
): string | null {
  const wanted = splitTableName(table)
  const match = adopted.find(
    ({ schema, table, db }) =>
      (db ?? ownAddress) === address &&
      table === wanted.table &&
      (schema ?? 'public') === (wanted.schema ?? 'public'),
  )
  return match?.name ?? null
}

/** A name for a table in the config that no other has. */
export function uniqueName(table: string, taken: ReadonlySet<string>): string {
  const tableName = splitTableName(table).table
  const choices = [tableName, table.replace('.', '_')]
  for (let n = 2; ; n++) {
    const free = choices.find((name) => !taken.has(name))
    if (free !== undefined) return free
    choices.push(`${tableName}_${n}`)
  }
}
