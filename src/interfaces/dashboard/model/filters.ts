/** What a page can be narrowed by: `one` text, or `many` values of the same name. */
export type FilterSpec = Readonly<Record<string, 'one' | 'many'>>

export type FiltersOf<S extends FilterSpec> = {
  readonly [K in keyof S]: S[K] extends 'many' ? readonly string[] : string
}

/** Filters as the address has them. What the page does not know is left out; nothing set is `''` or `[]`. */
export function readFilters<S extends FilterSpec>(spec: S, query: URLSearchParams): FiltersOf<S> {
  return Object.fromEntries(
    Object.entries(spec).map(([name, kind]) => [
      name,
      kind === 'many'
        ? query.getAll(name).filter((value) => value !== '')
        : (query.get(name) ?? ''),
    ]),
  ) as FiltersOf<S>
}

/** `?status=failed&status=parked&q=ohio`, or nothing when nothing is set. Reading it again gives the same filters. */
export function writeFilters<S extends FilterSpec>(
  spec: S,
  filters: Partial<FiltersOf<S>>,
): string {
  const query = new URLSearchParams()
  for (const name of Object.keys(spec)) {
    const value = filters[name] ?? ''
    for (const one of typeof value === 'string' ? [value] : value) {
      if (one !== '') query.append(name, one)
    }
  }
  const text = query.toString()
  return text === '' ? '' : `?${text}`
}

export function isFiltered<S extends FilterSpec>(spec: S, filters: FiltersOf<S>): boolean {
  return writeFilters(spec, filters) !== ''
}
