import { observable, useObserved } from './observable.ts'
import { type PageLocation, parseLocation } from './model/location.ts'

/** The path that the dashboard is mounted at; the server writes it into the page. */
const BASE = document.documentElement.dataset['base'] ?? '/'

const current = observable<PageLocation>(currentLocation())

function currentLocation(): PageLocation {
  const path = location.pathname.startsWith(BASE) ? location.pathname.slice(BASE.length) : ''
  return parseLocation(`/${path}`, location.search)
}

/** Listens to Back and Forward; once, at the start. */
export function startRouter(): void {
  addEventListener('popstate', () => current.set(currentLocation()))
}

export function useLocation(): PageLocation {
  return useObserved(current)
}

/**
 * The address of a page of the dashboard, for `href`: `/runs?status=failed` under the path it is mounted at. Two
 * slashes at its start would name another site.
 */
export function hrefOf(to: string): string {
  return BASE + to.replace(/^[\\/]+/, '')
}

/** The address of a call of the API. */
export function apiUrl(path: string): string {
  return BASE + path.replace(/^\//, '')
}

/** Goes there. `replace` for what is no step of its own, such as each letter of a search. */
export function navigate(to: string, { replace = false } = {}): void {
  const before = current.get().path
  history[replace ? 'replaceState' : 'pushState'](null, '', hrefOf(to))
  current.set(currentLocation())
  const anchor = to.split('#')[1]
  if (anchor !== undefined) requestAnimationFrame(() => focusSection(anchor))
  else if (!replace && current.get().path !== before) scrollTo(0, 0)
}

/** Scrolls to a part of the page and focuses it. */
export function focusSection(id: string): void {
  const part = document.getElementById(id)
  part?.scrollIntoView({ block: 'start' })
  part?.focus({ preventScroll: true })
}
