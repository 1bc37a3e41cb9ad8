/** A page of the dashboard, as its address names it. */
export type Page =
  | { readonly name: 'overview' | 'runs' | 'workers' | 'recovery' | 'dead-letters' | 'history' }
  | { readonly name: 'login' | 'nowhere' }
  | { readonly name: 'run' | 'target'; readonly id: string }
  /** Named by an own id, or a run by its source: looked up first, as the API resolves it. */
  | { readonly name: 'lookup'; readonly what: 'run' | 'target'; readonly ref: string }

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
  const what = first === 'runs' ? 'run' : first === 'targets' ? 'target' : null
  const ref = decode(second)
  if (rest.length > 0 || what === null || ref === null) return { name: 'nowhere' }
  return ID.test(ref) ? { name: what, id: ref } : { name: 'lookup', what, ref }
}

/** Null for what a URL would resolve to another path. */
function decode(segment: string): string | null {
  try {
    const text = decodeURIComponent(segment)
    return /^\.{0,2}$/.test(text) ? null : text
  } catch {
    return null
  }
}
