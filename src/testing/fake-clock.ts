import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Clock } from '../core/host/clock.ts'

type Sleeper = { readonly until: number; readonly wake: () => void }

/** A clock that moves only when a test moves it. Sleeping code runs as its time comes, in order. */
export class FakeClock implements Clock {
  readonly #sleepers = new Set<Sleeper>()
  readonly #bootedAt: number
  #now = 0

  /** `wallMs`: the wall clock at the time 0 of this clock. */
  constructor(wallMs = Date.UTC(2026, 0, 1)) {
    this.#bootedAt = wallMs
  }

  now(): number {
    return this.#now
  }

  wallNow(): number {
    return this.#bootedAt + this.#now
  }

  random(): number {
    return 0.5
  }

  sleep(ms: number, wake?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const sleeper = {
        until: this.#now + Math.max(0, ms),
        wake: () => {
          this.#sleepers.delete(sleeper)
          wake?.removeEventListener('abort', sleeper.wake)
          resolve()
        },
      }
      if (wake?.aborted) return resolve()
      wake?.addEventListener('abort', sleeper.wake)
      this.#sleepers.add(sleeper)
    })
  }

  /** Moves the time forward. Whatever sleeps until then runs on the way, at its own time. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms
    for (;;) {
      await nextTurn()
      const [next] = [...this.#sleepers].toSorted((a, b) => a.until - b.until)
      if (!next || next.until > end) break
      this.#now = Math.max(this.#now, next.until)
      next.wake()
    }
    this.#now = end
  }

  /** Suspends the process: time passes, and whatever slept through it runs late, at the end. */
  async suspend(ms: number): Promise<void> {
    this.#now += ms
    await this.advance(0)
  }
}
