import { observable, useObserved } from './observable.ts'

/** `system` follows the machine, and is not remembered. */
export const THEMES = ['system', 'light', 'dark'] as const
type Theme = (typeof THEMES)[number]

const KEY = 'unstuck-theme'
const theme = observable<Theme>('system')

/** As it was chosen the last time; once, at the start. */
export function startTheme(): void {
  setTheme(THEMES.find((one) => one === readTheme()) ?? 'system')
}

export function useTheme(): Theme {
  return useObserved(theme)
}

export function setTheme(chosen: Theme): void {
  theme.set(chosen)
  const root = document.documentElement
  if (chosen === 'system') delete root.dataset['theme']
  else root.dataset['theme'] = chosen
  try {
    if (chosen === 'system') localStorage.removeItem(KEY)
    else localStorage.setItem(KEY, chosen)
  } catch {
    // A browser that keeps nothing: then it holds for this page.
  }
}

function readTheme(): string | null {
  try {
    return localStorage.getItem(KEY)
  } catch {
    return null
  }
}
