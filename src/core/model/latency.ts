/** Default upper bounds of the buckets, in seconds; longer calls are counted beyond the last. */
export const LATENCY_BUCKETS = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
] as const

/** How long calls took, as counts per bucket. It only grows. */
export type LatencyHistogram = {
  /** Calls per bucket, and beyond the last. */
  readonly counts: number[]
  /** The sum, in seconds. */
  seconds: number
}

/** Latencies of a worker's own calls to the store. Stored in its row, and summed over all workers. */
export type WorkerStats = {
  readonly checkpoint: LatencyHistogram
  readonly claim: LatencyHistogram
}

export function emptyHistogram(bounds: readonly number[] = LATENCY_BUCKETS): LatencyHistogram {
  return { counts: Array.from({ length: bounds.length + 1 }, () => 0), seconds: 0 }
}

export function emptyStats(): WorkerStats {
  return { checkpoint: emptyHistogram(), claim: emptyHistogram() }
}

/** Counts one call. Every page waits for it: no allocation, a handful of comparisons. */
export function recordLatency(
  latency: LatencyHistogram,
  seconds: number,
  bounds: readonly number[] = LATENCY_BUCKETS,
): void {
  let step = 0
  while (step < bounds.length && seconds > bounds[step]!) step++
  latency.counts[step]!++
  latency.seconds += seconds
}

/** Adds the counts of another histogram. */
export function addHistogram(latency: LatencyHistogram, other: LatencyHistogram): void {
  other.counts.forEach((counted, step) => (latency.counts[step]! += counted))
  latency.seconds += other.seconds
}

/** Parses the stats of a worker, perhaps of another version. Returns null if they have another format. */
export function parseStats(value: unknown): WorkerStats | null {
  const { checkpoint, claim } = (value ?? {}) as Partial<Record<keyof WorkerStats, unknown>>
  return isHistogram(checkpoint) && isHistogram(claim) ? { checkpoint, claim } : null
}

/** Sums the stats of workers. Those of another format are skipped. */
export function sumStats(all: readonly unknown[]): WorkerStats {
  const sum = emptyStats()
  for (const stats of all.map(parseStats)) {
    if (!stats) continue
    addHistogram(sum.checkpoint, stats.checkpoint)
    addHistogram(sum.claim, stats.claim)
  }
  return sum
}

function isHistogram(value: unknown): value is LatencyHistogram {
  const { counts, seconds } = (value ?? {}) as Partial<Record<keyof LatencyHistogram, unknown>>
  return (
    Array.isArray(counts) &&
    counts.length === LATENCY_BUCKETS.length + 1 &&
    [...counts, seconds].every((one) => Number.isFinite(one) && one >= 0)
  )
}
