import { dirname, isAbsolute, join, relative, sep } from 'node:path'
import process from 'node:process'
import type { Mapping } from '../../../features/adopted/mapping.ts'
import { splitTable } from '../../../features/adopted/names.ts'
import { absoluteAddress, DEFAULT_ADDRESS, findConfig } from '../../../app/config-file.ts'
import { configNameFor } from '../package-type.ts'
import { literal } from './config-text.ts'

/** Where the config is or would be, and how databases are named in it. */
export type Place = {
  readonly path: string
  readonly isThere: boolean
  /** Unstuck's own database by that config. */
  readonly own: string
  /** The same as code, for a config that is made now. */
  readonly ownDb: string
  /** The database of the tables, as code; null: it is Unstuck's own. */
  readonly tablesDb: string | null
  /** The variable of the environment that the config reads, and whether it leads there now; null: it reads none. */
  readonly variable: { readonly name: string; readonly isSet: boolean } | null
}

/**
 * A table in PostgreSQL can be beside Unstuck's own, which have a schema to themselves. A SQLite file has no such thing,
 * so there Unstuck keeps one of its own and the user's stays as it is. Passwords stay in the environment.
 */
export function placeOf(
  address: string,
  /** What the config that is there says of its database, unless it is to be replaced. */
  { configured, isReplaced }: { configured: string | undefined; isReplaced: boolean },
  cwd: string = process.cwd(),
  env: NodeJS.ProcessEnv = process.env,
): Place {
  const found = findConfig(cwd)
  const path = found ?? join(cwd, configNameFor(cwd))
  const folder = dirname(path)
  const isServer = !address.startsWith('sqlite:')
  const fresh = isServer ? address : DEFAULT_ADDRESS
  const isKept = found !== null && !isReplaced
  const own = absoluteAddress(isKept ? (configured ?? DEFAULT_ADDRESS) : fresh, folder)
  const known = isServer ? variableOf(address, env) : null
  const isNamed = isServer && !(isKept && own === address)
  const code = isServer
    ? `process.env[${literal(known ?? USUAL)}]`
    : literal(`sqlite:${seenFrom(folder, address.slice('sqlite:'.length))}`)
  return {
    path,
    isThere: found !== null,
    own,
    ownDb: isServer ? code : literal(DEFAULT_ADDRESS),
    tablesDb: own === address ? null : code,
    variable: isNamed ? { name: known ?? USUAL, isSet: known !== null } : null,
  }
}

const USUAL = 'DATABASE_URL'

function seenFrom(folder: string, file: string): string {
  const path = relative(folder, file)
  return isAbsolute(path) ? path : path.replaceAll(sep, '/')
}

/** The one that people would use, where several lead there. */
function variableOf(address: string, env: NodeJS.ProcessEnv): string | null {
  const names = Object.keys(env).filter((name) => env[name] === address && /^[A-Z]\w*$/.test(name))
  return [USUAL, 'UNSTUCK_DB'].find((name) => names.includes(name)) ?? names[0] ?? null
}

/** What the config calls a table that it has adopted already; null: it has not. */
export function adoptedAs(
  table: string,
  address: string,
  adopted: readonly Mapping[],
  own: string,
): string | null {
  const asked = splitTable(table)
  const same = adopted.find(
    ({ schema, table, db }) =>
      (db ?? own) === address &&
      table === asked.table &&
      (schema ?? 'public') === (asked.schema ?? 'public'),
  )
  return same?.name ?? null
}

/** A name for a table in the config that no other has. */
export function nameFor(table: string, taken: ReadonlySet<string>): string {
  const plain = splitTable(table).table
  const choices = [plain, table.replace('.', '_')]
  for (let n = 2; ; n++) {
    const free = choices.find((name) => !taken.has(name))
    if (free !== undefined) return free
    choices.push(`${plain}_${n}`)
  }
}
