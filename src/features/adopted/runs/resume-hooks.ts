import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '../../../core/model/errors.ts'
import type { Mapping } from '../mapping.ts'
import type { AdoptedRow } from '../table/table.ts'

const FINISH_MS = 10_000

/** Calls of the user's `onResume`, which may take as long as the work itself: nobody waits for them until the end. */
export class Resumption {
  readonly #log: (line: string) => void
  readonly #running = new Set<Promise<void>>()

  constructor(log: (line: string) => void) {
    this.#log = log
  }

  /** Starts a row again that was put back in line. Only for whoever put it there. */
  start({ name, onResume }: Mapping, row: AdoptedRow): void {
    if (!onResume) return
    const call = Promise.try(onResume, row.user).then(
      () => {},
      (error: unknown) => this.#log(`onResume() of row ${row.key} of ${name}: ${messageOf(error)}`),
    )
    this.#running.add(call)
    void call.then(() => this.#running.delete(call))
  }

  /** Before a process ends: what only sends a message somewhere comes to its end. */
  async finish(): Promise<void> {
    if (this.#running.size === 0) return
    const over = new AbortController()
    const { signal } = over
    const late = sleep(FINISH_MS, undefined, { signal, ref: false }).catch(() => {})
    await Promise.race([Promise.all(this.#running), late])
    over.abort()
  }
}
