import { useEffect, useState } from 'preact/hooks'

/** One value that several components look at. */
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
      for (const tell of listeners) tell()
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
    const look = () => seen(() => source.get())
    // It may have changed between drawing and listening.
    look()
    return source.subscribe(look)
  }, [source])
  return source.get()
}
