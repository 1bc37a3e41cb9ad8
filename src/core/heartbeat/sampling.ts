import type { Store } from '../store/store.ts'
import type { Job } from './jobs.ts'

const SECOND_MS = 1_000
const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS
/** A chart shows a week. The eighth day is for the figures that its first hour is compared with. */
const KEEP_SAMPLES_MS = 8 * DAY_MS
/** Samples of single seconds. */
const KEEP_SECONDS_MS = 60 * MINUTE_MS
/** Rows of ended workers: how long they are kept, and how many. */
const KEEP_WORKERS_MS = DAY_MS
const KEEP_WORKERS_MAX = 1_000
/** A worker that was declared dead may return within this time, with all its measurements. */
const FOLD_AFTER_MS = 60 * MINUTE_MS
const PRUNE_EVERY_SAMPLES = 60

/**
 * Stores the progress of each run, on the minute, for charts and rates. The first sample a process takes, and then one an
 * hour, also deletes what has expired.
 */
export function sampleJob(store: Store): Job {
  let samples = 0
  return {
    name: 'sample',
    every: (wallMs) => MINUTE_MS - (wallMs % MINUTE_MS),
    leader: { role: 'sample', forMs: 1.5 * MINUTE_MS },
    run: async () => {
      await store.takeSample()
      if (samples++ % PRUNE_EVERY_SAMPLES === 0) await prune(store)
    },
  }
}

/** Stores it each second as well, while the run of this process is young: a run of 17 seconds is over before its first minute. */
export function youngSampleJob(store: Store, isYoung: () => boolean): Job {
  return {
    name: 'sample-young',
    every: SECOND_MS,
    isReady: isYoung,
    // Every process that works does it: the leader may have no work of its own.
    run: () => store.takeSample({ unlessWithinMs: 0.9 * SECOND_MS, onlyChanged: true }),
  }
}

async function prune(store: Store): Promise<void> {
  const now = await store.now()
  await store.prune({
    samplesBefore: now - KEEP_SAMPLES_MS,
    minutesBefore: now - KEEP_SECONDS_MS,
    statsBefore: now - FOLD_AFTER_MS,
    workers: {
      endedBefore: now - KEEP_WORKERS_MS,
      settledBefore: now - FOLD_AFTER_MS,
      keepNewest: KEEP_WORKERS_MAX,
    },
  })
}
