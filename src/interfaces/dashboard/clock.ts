import { useEffect, useState } from 'preact/hooks'
import { observable, useObserved } from './observable.ts'

/** How far the database's clock, which ages are measured by, is ahead of the browser's. */
let aheadMs = 0
const tick = observable(0)
let watchers = 0
let timer: ReturnType<typeof setInterval> | undefined

/** Called with the `now` of each response. */
export function setClock(now: string): void {
  aheadMs = Date.parse(now) - Date.now()
}

export function nowMs(): number {
  return Date.now() + aheadMs
}

/** The time, once a second while a component uses it. */
export function useNow(): number {
  useTicking()
  useObserved(tick)
  return nowMs()
}

/** A text made of the time. Renders again only when the text is another. */
export function useTimeText(text: (now: number) => string): string {
  useTicking()
  const [, seen] = useState('')
  useEffect(() => tick.subscribe(() => seen(text(nowMs()))), [text])
  return text(nowMs())
}

function useTicking(): void {
  useEffect(() => {
    watchers++
    timer ??= setInterval(() => !document.hidden && tick.set(tick.get() + 1), 1_000)
    return () => {
      if (--watchers > 0) return
      clearInterval(timer)
      timer = undefined
    }
  }, [])
}
