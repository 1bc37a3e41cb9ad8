import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '../../../core/model/errors.ts'
import type { Mapping } from '../mapping.ts'
import type { AdoptedRow } from '../table/table.ts'

const FINISH_TIMEOUT_MS = 10_000

/** Calls of the user's `onResume`, which may take as long as the work itself: nobody waits for them until the end. */
export class ResumeHooks {
  readonly #log: (line: string) => void
  readonly #running = new Set<Promise<void>>()

  constructor(log: (line: string) => void) {
    this.#log = log
  }

  /** Starts a row again that was put back in line. Only for whoever put it there. */
  start({ name, onResume }: Mapping, row: AdoptedRow): void {
    if (!onResume) return
    const call = Promise.try(onResume, row.userRow).then(
      () => {},
      (error: unknown) => this.#log(`onResume() of row ${row.key} of ${name}: ${messageOf(error)}`),
    )
    this.#running.add(call)
    void call.then(() => this.#running.delete(call))
  }

  /** Before a process ends: what only sends a message somewhere comes to its end. */
  async drain(): Promise<void> {
    if (this.#running.size === 0) return
    const timer = new AbortController()
    const { signal } = timer
    const timeout = sleep(FINISH_TIMEOUT_MS, undefined, { signal, ref: false }).catch(() => {})
    await Promise.race([Promise.all(this.#running), timeout])
    timer.abort()
  }
}
