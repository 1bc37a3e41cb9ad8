import { useEffect, useState } from 'preact/hooks'
import { ApiError, get } from './api.ts'
import type { Page } from './shapes.ts'

type Resource<T> = {
  /** The last that came; kept while it is asked for again, and when that fails. */
  readonly data: T | undefined
  readonly error: ApiError | null
  readonly isLoading: boolean
  readonly reload: () => void
}

type RefreshOptions = {
  readonly refreshMs?: number
  /** Loaded again when this number changes, such as `useCompletedActions()`. */
  readonly version?: number
}

const RETRY_MS = 3_000

/**
 * The response of a GET. Loaded again when the path changes, on `reload`, every `refreshMs` while visible, and by
 * itself after an error that passes. Null asks for nothing.
 */
export function useResource<T>(
  path: string | null,
  { refreshMs, version: outer }: RefreshOptions = {},
): Resource<T> {
  const [reloads, setReloads] = useState(0)
  const [state, setState] = useState<{ path: string | null; data?: T; error: ApiError | null }>({
    path: null,
    error: null,
  })
  const [isLoading, setLoading] = useState(path !== null)

  useEffect(() => {
    if (path === null) return
    const leaving = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const again = (ms: number) => {
      timer = setTimeout(() => (document.hidden ? again(ms) : void load()), ms)
    }
    const load = async () => {
      setLoading(true)
      try {
        const data = await get<T>(path, leaving.signal)
        setState({ path, data, error: null })
        if (refreshMs) again(refreshMs)
      } catch (error) {
        if (leaving.signal.aborted) return
        if (!(error instanceof ApiError)) throw error
        setState((last) => (last.path === path ? { ...last, error } : { path, error }))
        if (error.isTransient) again(RETRY_MS)
      }
      setLoading(false)
    }
    void load()
    return () => {
      clearTimeout(timer)
      leaving.abort()
    }
  }, [path, refreshMs, reloads, outer])

  return {
    data: state.data,
    error: state.path === path ? state.error : null,
    isLoading,
    reload: () => setReloads((n) => n + 1),
  }
}

export type List<T> = Omit<Resource<T>, 'data'> & {
  readonly items: readonly T[] | undefined
  readonly hasMore: boolean
  /** Adds the next page. */
  readonly more: () => Promise<void>
}

/** A list by pages: the first is kept fresh like any resource, `more` adds the next ones below. */
export function useList<T>(path: string | null, options: RefreshOptions = {}): List<T> {
  const first = useResource<Page<T>>(path, options)
  const [added, setAdded] = useState<{ path: string | null; items: T[]; next: Page<T>['next'] }>()
  const [failed, setFailed] = useState<ApiError | null>(null)
  const rest = added?.path === path ? added : undefined
  const next = rest ? rest.next : (first.data?.next ?? null)

  return {
    ...first,
    error: failed ?? first.error,
    items: first.data && mergePages(first.data.items, rest?.items ?? []),
    hasMore: next !== null,
    async more() {
      if (path === null || next === null) return
      const after = `${path.includes('?') ? '&' : '?'}after=${encodeURIComponent(next)}`
      try {
        const page = await get<Page<T>>(path + after)
        setFailed(null)
        setAdded({ path, items: [...(rest?.items ?? []), ...page.items], next: page.next })
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
        setFailed(error)
      }
    },
    reload() {
      setAdded(undefined)
      setFailed(null)
      first.reload()
    },
  }
}

/** A fresh first page may have pushed some of its rows into the second. */
function mergePages<T>(first: readonly T[], rest: readonly T[]): readonly T[] {
  if (rest.length === 0) return first
  const ids = new Set(first.map(idOf))
  return [...first, ...rest.filter((item) => !ids.has(idOf(item)))]
}

function idOf(item: unknown): unknown {
  return (item as { id?: unknown }).id ?? item
}
