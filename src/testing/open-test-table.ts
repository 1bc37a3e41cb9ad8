import assert from 'node:assert/strict'
import type { AdoptedOptions, MappedValue, Mapping } from '../features/adopted/mapping.ts'
import { type AdoptedTable, openAdoptedTable } from '../features/adopted/table/table.ts'
import { parseMapping } from '../features/adopted/parse-mapping.ts'
import { DEFAULT_POLICY } from '../core/model/policy.ts'
import { postgresEngine } from './postgres-engine.ts'
import { sqliteEngine } from './sqlite-engine.ts'
import { engineOf, createUserTable, type UserTable } from './user-tables.ts'

/** Both engines: what holds for a user's table holds in either. */
export const ENGINES = [sqliteEngine, postgresEngine]

/** What the config makes of a user's words. */
export function mappingOf(options: AdoptedOptions, name = 'tested'): Mapping {
  const mistakes: string[] = []
  const mapping = parseMapping(name, options, DEFAULT_POLICY, mistakes)
  assert.deepEqual(mistakes, [])
  return mapping!
}

/** Status values for a filter, whether or not a row has an error. */
export function valuesOf(...values: readonly string[]): MappedValue[] {
  return values.map((value) => ({ value, hasError: null }))
}

export type OpenedTable = AsyncDisposable & { readonly table: AdoptedTable }

/** A user's table that is there, opened as adopted; closed when the test is done with it. */
export async function openTestTable(url: string, options: AdoptedOptions): Promise<OpenedTable> {
  const table = await openAdoptedTable(mappingOf(options), url)
  return { table, [Symbol.asyncDispose]: () => table.close() }
}

/** The same for one of the four, which is made first. */
export async function openUserTable(url: string, users: UserTable): Promise<OpenedTable> {
  await createUserTable(url, users)
  return openTestTable(url, users.options[engineOf(url)])
}
