import { shortId, type WorkerId } from '../../../core/model/id.ts'
import type { Target } from '../../../core/model/target.ts'
import type { Look } from './snapshot.ts'
import type { Mark } from './reporter.ts'

/** One line of the list of workers. */
export type Place = {
  readonly worker: WorkerId
  readonly pid: number
  readonly target: Target | null
  readonly state: 'working' | 'idle' | 'took over' | Mark
}

type Orphan = { readonly epoch: number; readonly page: number }

/** Who stands on which line: a new worker takes the place of one that is gone, so that nobody else moves. */
export class Roster {
  readonly #places: (Place | null)[]
  readonly #marks = new Map<WorkerId, Mark>()
  /** Targets taken from a worker, until their next page is saved. */
  readonly #orphans = new Map<string, Orphan>()

  constructor(places: number) {
    this.#places = Array.from({ length: places }, () => null)
  }

  get places(): readonly (Place | null)[] {
    return this.#places
  }

  mark(worker: WorkerId, mark: Mark | null): void {
    if (mark === null) this.#marks.delete(worker)
    else this.#marks.set(worker, mark)
    const index = this.#places.findIndex((place) => place?.worker === worker)
    const place = this.#places[index]
    if (!place || mark === null) return
    this.#places[index] = { ...place, state: mark }
    const { target } = place
    if (target) this.#orphans.set(target.id, { epoch: target.epoch, page: target.page })
  }

  markAll(mark: Mark): void {
    for (const place of this.#places) if (place) this.mark(place.worker, mark)
  }

  see({ workers, held }: Look): void {
    const living = new Map(workers.map((worker) => [worker.id, worker]))
    for (const [index, place] of this.#places.entries()) {
      const worker = place && living.get(place.worker)
      if (!worker) continue
      living.delete(worker.id)
      const target = held.get(worker.id) ?? null
      // What a stopped worker held stays on its line, also when somebody else has it.
      const shown = target ?? (this.#marks.has(worker.id) ? place.target : null)
      this.#places[index] = { ...place, target: shown, state: this.#state(worker.id, target) }
    }
    for (const { id, process } of living.values()) {
      if (this.#marks.get(id) === 'killed') continue
      const index = this.#places.findIndex((place) => !place || !isThere(place, workers))
      if (index < 0) return
      const target = held.get(id) ?? null
      this.#places[index] = { worker: id, pid: process.pid, target, state: this.#state(id, target) }
    }
  }

  #state(worker: WorkerId, target: Target | null): Place['state'] {
    const mark = this.#marks.get(worker)
    if (mark) return mark
    if (!target) return 'idle'
    const orphan = this.#orphans.get(target.id)
    if (orphan && target.epoch > orphan.epoch && target.page === orphan.page) return 'took over'
    return 'working'
  }
}

function isThere(place: Place, workers: Look['workers']): boolean {
  return workers.some(({ id }) => id === place.worker)
}

export function nameOf({ worker }: Place): string {
  return shortId(worker)
}
