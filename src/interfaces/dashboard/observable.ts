import { useEffect, useState } from 'preact/hooks'

/** A value that several components use. */
export type Observable<T> = {
  get(): T
  set(value: T): void
  subscribe(changed: () => void): () => void
}

export function observable<T>(initial: T): Observable<T> {
  let value = initial
  const listeners = new Set<() => void>()
  return {
    get: () => value,
    set(next) {
      if (Object.is(next, value)) return
      value = next
      for (const listener of listeners) listener()
    },
    subscribe(changed) {
      listeners.add(changed)
      return () => void listeners.delete(changed)
    },
  }
}

/** Renders again whenever it changes. */
export function useObserved<T>(source: Observable<T>): T {
  const [, seen] = useState<unknown>(source.get())
  useEffect(() => {
    const update = () => seen(() => source.get())
    // It may have changed between drawing and listening.
    update()
    return source.subscribe(update)
  }, [source])
  return source.get()
}

/** Returns a setting of this browser; null if there is none, or the browser keeps nothing. */
export function readSetting(key: string): string | null {
  try {
    return localStorage.getItem(key)
  } catch {
    return null
  }
}

/** Keeps a setting in this browser; null removes it. */
export function saveSetting(key: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(key)
    else localStorage.setItem(key, value)
  } catch {
    // The browser keeps nothing: the setting holds for this page.
  }
}
