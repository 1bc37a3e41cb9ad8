import { pace, PACE_MS, type Mark, type Pace } from '../../decide/pace.ts'
import { doneOf, openTargets, type Run } from '../../model/run.ts'
import type { Sample } from '../../model/sample.ts'
import type { Millis } from '../../model/time.ts'
import type { Store } from '../../store/store.ts'

/** Samples come once a minute: until there are some, a run's own totals since its start say how fast it is. */
const YOUNG_MS = 3 * 60_000

/** Of all runs, as far as they matter for their pace now. */
export function recentSamples(store: Store, now: Millis): Promise<Sample[]> {
  return store.samples({ since: now - PACE_MS, until: now + 1 })
}

/** How fast a run goes now; null for one that is not at work, or while too little is known. `samples`: by time. */
export function paceOf(samples: readonly Sample[], run: Run, now: Millis): Pace | null {
  if (run.status !== 'running') return null
  const { startedAt, resumes } = run
  const isYoung = resumes === 0 && startedAt !== null && now - startedAt < YOUNG_MS
  const start: Mark[] = isYoung ? [{ at: startedAt, pages: 0, items: 0, done: 0 }] : []
  const own = samples.filter((sample) => sample.run === run.id)
  return pace([...start, ...own, markOf(run, now)], leftOf(run))
}

function markOf(run: Run, at: Millis): Mark {
  const { pages, itemsNew, itemsUpdated } = run.counts
  return { at, pages, items: itemsNew + itemsUpdated, done: doneOf(run).done }
}

/** What is not done yet and will be; null while targets still come in. */
function leftOf(run: Run): number | null {
  if (run.progress) return Math.max(0, run.progress.total - run.progress.done)
  return run.plannedAt === null ? null : openTargets(run.counts)
}
