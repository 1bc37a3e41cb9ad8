import { useMemo } from 'preact/hooks'
import { Chart } from '../../kit/chart.tsx'
import { Section } from '../../kit/section.tsx'
import { Loaded } from '../../kit/states.tsx'
import { rangeOf, perMinute } from '../../model/series.ts'
import { nowMs } from '../../clock.ts'
import { useResource } from '../../resource.ts'
import type { RunDetail, Series } from '../../shapes.ts'

const FRESH_MS = 15_000

/** How fast it went, since it began or for as long as samples are kept. */
export function RunPace({ run }: { run: RunDetail['run'] }) {
  const since = rangeOf(run.createdAt, nowMs())
  const series = useResource<Series>(`/api/series?run=${run.id}&since=${since}`, {
    ...(run.health !== null && { refreshMs: FRESH_MS }),
  })
  const { data } = series
  const charts = useMemo(() => {
    const span = { from: run.startedAt ?? run.createdAt, to: run.finishedAt }
    return data && { pages: perMinute(data, 'pages', span), items: perMinute(data, 'items', span) }
  }, [data, run.startedAt, run.createdAt, run.finishedAt])
  return (
    <Section title="Pace">
      <Loaded of={{ ...series, data: charts }} lines={4}>
        {({ pages, items }) => (
          <div class="charts">
            <Chart label="Pages" unit="pages/min" kind="area" points={pages} />
            <Chart label="Items" unit="items/min" kind="area" points={items} />
          </div>
        )}
      </Loaded>
    </Section>
  )
}
