import type { Liveness, Worker } from '../shapes.ts'

/** Worst first. */
export const LIVENESS_ORDER: readonly Liveness[] = [
  'gone',
  'silent',
  'stalled',
  'unknown',
  'present',
]

/** Those that ask for a look on top; among equals by source and host, so that rows keep their place while beats come in. */
export function sortWorkers(workers: readonly Worker[]): Worker[] {
  return workers.toSorted(
    (a, b) =>
      LIVENESS_ORDER.indexOf(a.liveness) - LIVENESS_ORDER.indexOf(b.liveness) ||
      compare(a.source, b.source) ||
      compare(a.host, b.host) ||
      compare(a.id, b.id),
  )
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
