import { shortId, type WorkerId } from '../../../core/model/id.ts'
import type { Target } from '../../../core/model/target.ts'
import type { Snapshot } from './snapshot.ts'
import type { WorkerMark } from './reporter.ts'

/** One line of the list of workers. */
export type WorkerRow = {
  readonly worker: WorkerId
  readonly pid: number
  readonly target: Target | null
  readonly state: 'working' | 'idle' | 'took over' | WorkerMark
}

type Orphan = { readonly epoch: number; readonly page: number }

/** Who stands on which line: a new worker takes the place of one that is gone, so that nobody else moves. */
export class WorkerList {
  readonly #rows: (WorkerRow | null)[]
  readonly #marks = new Map<WorkerId, WorkerMark>()
  /** Targets taken from a worker, until their next page is saved. */
  readonly #orphans = new Map<string, Orphan>()

  constructor(count: number) {
    this.#rows = Array.from({ length: count }, () => null)
  }

  get rows(): readonly (WorkerRow | null)[] {
    return this.#rows
  }

  mark(worker: WorkerId, mark: WorkerMark | null): void {
    if (mark === null) this.#marks.delete(worker)
    else this.#marks.set(worker, mark)
    const index = this.#rows.findIndex((row) => row?.worker === worker)
    const row = this.#rows[index]
    if (!row || mark === null) return
    this.#rows[index] = { ...row, state: mark }
    const { target } = row
    if (target) this.#orphans.set(target.id, { epoch: target.epoch, page: target.page })
  }

  markAll(mark: WorkerMark): void {
    for (const row of this.#rows) if (row) this.mark(row.worker, mark)
  }

  update({ workers, held }: Snapshot): void {
    const living = new Map(workers.map((worker) => [worker.id, worker]))
    for (const [index, row] of this.#rows.entries()) {
      const worker = row && living.get(row.worker)
      if (!worker) continue
      living.delete(worker.id)
      const target = held.get(worker.id) ?? null
      // What a stopped worker held stays on its line, also when somebody else has it.
      const shown = target ?? (this.#marks.has(worker.id) ? row.target : null)
      this.#rows[index] = { ...row, target: shown, state: this.#state(worker.id, target) }
    }
    for (const { id, process } of living.values()) {
      if (this.#marks.get(id) === 'killed') continue
      const index = this.#rows.findIndex((row) => !row || !isListed(row, workers))
      if (index < 0) return
      const target = held.get(id) ?? null
      this.#rows[index] = { worker: id, pid: process.pid, target, state: this.#state(id, target) }
    }
  }

  #state(worker: WorkerId, target: Target | null): WorkerRow['state'] {
    const mark = this.#marks.get(worker)
    if (mark) return mark
    if (!target) return 'idle'
    const orphan = this.#orphans.get(target.id)
    if (orphan && target.epoch > orphan.epoch && target.page === orphan.page) return 'took over'
    return 'working'
  }
}

function isListed(row: WorkerRow, workers: Snapshot['workers']): boolean {
  return workers.some(({ id }) => id === row.worker)
}

export function nameOf({ worker }: WorkerRow): string {
  return shortId(worker)
}
