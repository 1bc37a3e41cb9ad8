import { buildSeries, seriesRange, IDLE_SAMPLE_GAP_MS } from '../../../presenters/series.ts'
import type { RunId } from '../../../core/model/id.ts'
import { isLive, type Run } from '../../../core/model/run.ts'
import { iso } from '../../../core/model/time.ts'
import type { Store } from '../../../core/store/store.ts'

/** Returns pages, items and recoveries per time step, for one run, one source or all. */
export async function seriesOf(
  store: Store,
  forMs: number,
  only: { readonly run?: RunId; readonly source?: string },
) {
  const now = await store.now()
  const span = seriesRange(forMs, now)
  const { since, until, stepMs } = span
  const everyMinutes = stepMs / 60_000
  const from = since - stepMs
  const [still, samples, recoveries, runs] = await Promise.all([
    // Runs without progress are sampled hourly.
    store.samples({
      since: since - IDLE_SAMPLE_GAP_MS,
      until: from - 1,
      everyMinutes: 60,
      ...only,
    }),
    store.samples({ since: from, until, everyMinutes, ...only }),
    store.recoveriesPerStep({ since, stepMs, ...only }),
    liveOf(store, only),
  ])
  const live = { runs: new Set(runs.map(({ id }) => id)), now }
  return {
    since: iso(since),
    until: iso(until),
    stepSeconds: stepMs / 1_000,
    points: buildSeries([...still, ...samples], recoveries, span, live).map((point) => ({
      ...point,
      at: iso(point.at),
    })),
  }
}

async function liveOf(
  store: Store,
  { run, source }: { readonly run?: RunId; readonly source?: string },
): Promise<Run[]> {
  if (run === undefined && source === undefined) {
    return (await store.liveRuns()).map((one) => one.run)
  }
  const found = run === undefined ? await store.liveRun(source!) : await store.run(run)
  return found && isLive(found.status) ? [found] : []
}
