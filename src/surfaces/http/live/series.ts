import { makeSeries, spanOf } from '../../../decide/series.ts'
import type { RunId } from '../../../model/id.ts'
import { iso } from '../../../model/time.ts'
import type { Store } from '../../../store/store.ts'

/** What was done over time, of one run, one source or all: pages, items and recoveries in each step. */
export async function seriesOf(
  store: Store,
  forMs: number,
  only: { readonly run?: RunId; readonly source?: string },
) {
  const span = spanOf(forMs, await store.now())
  const { since, until, stepMs } = span
  const everyMinutes = stepMs / 60_000
  const [samples, recoveries] = await Promise.all([
    store.samples({ since: since - stepMs, until, everyMinutes, ...only }),
    store.recoveriesPerStep({ since, stepMs, ...only }),
  ])
  return {
    since: iso(since),
    until: iso(until),
    stepSeconds: stepMs / 1_000,
    points: makeSeries(samples, recoveries, span).map((point) => ({ ...point, at: iso(point.at) })),
  }
}
