/** A page of the dashboard, as its address names it. */
export type Page =
  | { readonly name: 'overview' | 'runs' | 'workers' | 'recovery' | 'dead-letters' | 'history' }
  | { readonly name: 'login' | 'nowhere' }
  | { readonly name: 'run' | 'target'; readonly id: string }

export type PageLocation = {
  /** Without the base path: `/runs/019…` */
  readonly path: string
  readonly page: Page
  /** The filters. */
  readonly query: URLSearchParams
}

const LISTS = ['runs', 'workers', 'recovery', 'dead-letters', 'history', 'login'] as const
const ID = /^[0-9a-f-]{8,36}$/

/** Parses an address. One that fits no page is `nowhere`. */
export function parseLocation(path: string, search: string): PageLocation {
  return { path, page: pageOf(path), query: new URLSearchParams(search) }
}

function pageOf(path: string): Page {
  const [first, second, ...rest] = path.split('/').filter((part) => part !== '')
  if (first === undefined) return { name: 'overview' }
  if (second === undefined) {
    const name = LISTS.find((list) => list === first)
    return name ? { name } : { name: 'nowhere' }
  }
  if (rest.length > 0 || !ID.test(second)) return { name: 'nowhere' }
  if (first === 'runs') return { name: 'run', id: second }
  if (first === 'targets') return { name: 'target', id: second }
  return { name: 'nowhere' }
}
