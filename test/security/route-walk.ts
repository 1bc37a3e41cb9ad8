import { newId } from '../../src/core/model/id.ts'
import type { Route } from '../../src/contracts/route.ts'
import { ALL_ROUTES } from '../../src/testing/all-routes.ts'

/** The table of calls, for tests that hold something for each of them. */

export const MUTATION_ROUTES = ALL_ROUTES.filter(({ method }) => method !== 'GET')
export const READ_ROUTES = ALL_ROUTES.filter(({ method }) => method === 'GET')

export function nameOf({ method, path }: Route): string {
  return `${method} ${path}`
}

/** Its path about these things; what is not given is nothing that exists, under a name that could be one. */
export function pathOf({ path }: Route, about: Readonly<Record<string, string>> = {}): string {
  return path.replace(/:(\w+)/g, (_, name: string) => about[name] ?? validValue(name))
}

function validValue(name: string): string {
  if (name === 'run' || name === 'target') return newId()
  return name === 'fingerprint' ? '0123456789ab' : 'nothing'
}

/** The names that a call reads out of its path and its query. */
export function parametersOf({ params, query }: Route): { path: string[]; query: string[] } {
  const names = (schema: unknown): string[] =>
    Object.keys((schema as { entries?: object } | undefined)?.entries ?? {})
  return { path: names(params), query: names(query) }
}
