import { LIVENESS, type Worker } from '../shapes.ts'

/** Sorts the lost ones first; equals by source and host, so that a heartbeat moves no row. */
export function sortWorkers(workers: readonly Worker[]): Worker[] {
  return workers.toSorted(
    (a, b) =>
      LIVENESS.indexOf(a.liveness) - LIVENESS.indexOf(b.liveness) ||
      compare(a.source, b.source) ||
      compare(a.host ?? '', b.host ?? '') ||
      compare(a.id, b.id),
  )
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
