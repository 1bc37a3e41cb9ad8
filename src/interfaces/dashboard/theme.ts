import { observable, readSetting, saveSetting, useObserved } from './observable.ts'

/** `system` follows the machine, and is not kept. */
export const THEMES = ['system', 'light', 'dark'] as const
type Theme = (typeof THEMES)[number]

const KEY = 'unstuck-theme'
const theme = observable<Theme>('system')

/** Applies the theme that was chosen last; once, at the start. */
export function startTheme(): void {
  const kept = readSetting(KEY)
  setTheme(THEMES.find((one) => one === kept) ?? 'system')
}

export function useTheme(): Theme {
  return useObserved(theme)
}

export function setTheme(chosen: Theme): void {
  theme.set(chosen)
  const { dataset } = document.documentElement
  if (chosen === 'system') delete dataset['theme']
  else dataset['theme'] = chosen
  saveSetting(KEY, chosen === 'system' ? null : chosen)
}
